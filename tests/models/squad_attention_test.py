import numpy as np
import pytest
import torch
from allennlp.modules.seq2seq_encoders import GruSeq2SeqEncoder
from allennlp.nn.util import min_value_of_dtype
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.models.squad import BidafAttention, ResidualAttention, best_span

DIM, HIDDEN = 6, 4


def softmax(scores):
    exponents = np.exp(scores - scores.max())
    return exponents / exponents.sum()


def bidaf(x, q, w, b):
    """The formulas of the docstring for one pair of texts without padding, word by word."""
    scores = np.empty((len(x), len(q)))
    for i, j in np.ndindex(*scores.shape):
        scores[i, j] = w @ np.concatenate([x[i], q[j], x[i] * q[j]]) + b
    c = softmax(scores.max(1)) @ x
    rows = []
    for x_i, scores_i in zip(x, scores, strict=True):
        a_i = softmax(scores_i) @ q
        rows.append(np.concatenate([x_i, a_i, x_i * a_i, x_i * c]))
    return np.stack(rows)


def residual(x, h, w, linear):
    """The formulas of the docstring for one text without padding, word by word."""
    rows = []
    for i, h_i in enumerate(h):
        a_i = np.zeros_like(h_i)
        # The other words; one word has none.
        others = np.delete(h, i, axis=0)
        if len(others):
            scores = [w @ np.concatenate([h_i, h_j, h_i * h_j]) for h_j in others]
            a_i = softmax(np.array(scores)) @ others
        z = linear.weight.numpy() @ np.concatenate([h_i, a_i, h_i * a_i]) + linear.bias.numpy()
        rows.append(x[i] + np.maximum(z, 0))
    return np.stack(rows)


@pytest.mark.parametrize("seed", range(3))
def test_bidaf_attention_computes_the_formulas(seed):
    torch.manual_seed(seed)
    module = BidafAttention(DIM).double()
    weights, bias = module.similarity.parameters()
    bias.data.fill_(0.3)
    context = torch.randn(3, 9, DIM).double()
    question = torch.randn(3, 5, DIM).double()
    context_lengths = [9, 1, 4]
    question_lengths = [2, 5, 1]
    context_mask = torch.arange(9) < torch.tensor(context_lengths)[:, None]
    question_mask = torch.arange(5) < torch.tensor(question_lengths)[:, None]
    with torch.no_grad():
        output = module(context, context_mask, question, question_mask).numpy()
    w = weights.detach().numpy()
    for row in range(3):
        x = context[row, : context_lengths[row]].numpy()
        q = question[row, : question_lengths[row]].numpy()
        np.testing.assert_allclose(output[row, : len(x)], bidaf(x, q, w, 0.3), rtol=1e-9)


class TestResidualAttention:
    @pytest.fixture
    def module(self):
        torch.manual_seed(0)
        encoder = GruSeq2SeqEncoder(DIM, HIDDEN // 2, bidirectional=True)
        return ResidualAttention(encoder, dropout=0.2).double().requires_grad_(False)

    @pytest.mark.parametrize("lengths", [(8, 3, 1), (1, 1)], ids=str)
    def test_it_computes_the_formulas(self, module, lengths):
        text = torch.randn(len(lengths), max(lengths), DIM).double()
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        output = module.eval()(text, mask).numpy()
        weights = next(module.similarity.parameters()).numpy()
        for row, length in enumerate(lengths):
            alone = text[row : row + 1, :length]
            hidden = module.encoder(alone, mask[row : row + 1, :length])[0].numpy()
            expected = residual(alone[0].numpy(), hidden, weights, module.projection)
            np.testing.assert_allclose(output[row, :length], expected, rtol=1e-7, atol=1e-12)

    def test_the_encoder_and_the_linear_layer_have_their_inputs_dropped_out(self, module):
        inputs = []
        for part in (module.encoder, module.projection):
            part.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
        module.train()(torch.randn(200, 3, DIM).double(), torch.ones(200, 3, dtype=torch.bool))
        assert [tensor.shape[-1] for tensor in inputs] == [DIM, 3 * HIDDEN]
        for tensor in inputs:
            dropped = tensor == 0
            assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
            assert 0.15 < dropped.double().mean() < 0.25

    def test_the_backward_pass_keeps_one_tensor_of_pairs(self, module):
        """For each pair of words, autograd keeps one weight and one byte of a mask."""
        kept = {}
        n_words = 200
        n_pairs = 2 * n_words**2

        def keep(tensor):
            if tensor.numel() >= n_pairs:
                kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor

        mask = torch.ones(2, n_words, dtype=torch.bool)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            module.requires_grad_(True)(torch.randn(2, n_words, DIM).double(), mask)
        assert sum(kept.values()) <= n_pairs * (8 + 1)


class TestBestSpan:
    @given(
        lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
        max_length=st.integers(1, 45),
        seed=st.integers(0, 10_000),
    )
    def test_it_is_the_best_of_all_short_ones(self, lengths, max_length, seed):
        generator = torch.Generator().manual_seed(seed)
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        # Shape of each: (n_texts, n_words)
        start, end = 3 * torch.randn(2, *mask.shape, generator=generator)
        lowest = min_value_of_dtype(torch.float)
        start = start.masked_fill(~mask, lowest).log_softmax(-1)
        end = end.masked_fill(~mask, lowest).log_softmax(-1)
        spans, scores = best_span(start, end, max_length)
        for row, length in enumerate(lengths):
            expected = {}
            for first in range(length):
                for last in range(first, min(first + max_length, length)):
                    expected[first, last] = (start[row, first] + end[row, last]).item()
            assert tuple(spans[row].tolist()) == max(expected, key=expected.get)
            assert scores[row].item() == pytest.approx(max(expected.values()), abs=1e-5)

    def test_without_a_limit_it_matches_allennlp(self):
        from allennlp_models.rc.models.utils import get_best_span

        torch.manual_seed(0)
        start, end = torch.randn(2, 16, 30).log_softmax(-1)
        assert torch.equal(best_span(start, end, 30)[0], get_best_span(start, end))
