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
    scores = np.array([[w @ np.concatenate([x_i, q_j, x_i * q_j]) + b for q_j in q] for x_i in x])
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
        others = [j for j in range(len(h)) if j != i]
        scores = [w @ np.concatenate([h_i, h[j], h_i * h[j]]) for j in others]
        a_i = softmax(np.array(scores)) @ h[others] if others else np.zeros_like(h_i)
        z = linear.weight.numpy() @ np.concatenate([h_i, a_i, h_i * a_i]) + linear.bias.numpy()
        rows.append(x[i] + np.maximum(z, 0))
    return np.stack(rows)


@pytest.mark.parametrize("seed", range(3))
def test_bidaf_attention_computes_the_formulas(seed):
    torch.manual_seed(seed)
    module = BidafAttention(DIM).double()
    weights, bias = module.similarity.parameters()
    bias.data.fill_(0.3)
    context, question = torch.randn(3, 9, DIM).double(), torch.randn(3, 5, DIM).double()
    lengths = [(9, 2), (1, 5), (4, 1)]
    context_mask = torch.arange(9) < torch.tensor([n for n, _ in lengths])[:, None]
    question_mask = torch.arange(5) < torch.tensor([n for _, n in lengths])[:, None]
    with torch.no_grad():
        found = module(context, context_mask, question, question_mask).numpy()
    for row, (n_context, n_question) in enumerate(lengths):
        expected = bidaf(
            context[row, :n_context].numpy(),
            question[row, :n_question].numpy(),
            weights.detach().numpy(),
            0.3,
        )
        np.testing.assert_allclose(found[row, :n_context], expected, rtol=1e-9)


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
        found = module.eval()(text, mask).numpy()
        weights = next(module.similarity.parameters()).numpy()
        for row, length in enumerate(lengths):
            alone = text[row : row + 1, :length]
            hidden = module.encoder(alone, mask[row : row + 1, :length])[0].numpy()
            expected = residual(alone[0].numpy(), hidden, weights, module.projection)
            np.testing.assert_allclose(found[row, :length], expected, rtol=1e-7, atol=1e-12)

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
        start, end = (
            (3 * torch.randn(mask.shape, generator=generator))
            .masked_fill(~mask, min_value_of_dtype(torch.float))
            .log_softmax(-1)
            for _ in range(2)
        )
        spans, scores = best_span(start, end, max_length)
        for row, length in enumerate(lengths):
            every = [(i, j) for i in range(length) for j in range(i, min(i + max_length, length))]
            score_of = {(i, j): (start[row, i] + end[row, j]).item() for i, j in every}
            assert tuple(spans[row].tolist()) == max(every, key=score_of.get)
            assert scores[row].item() == pytest.approx(max(score_of.values()), abs=1e-5)

    def test_without_a_limit_it_matches_allennlp(self):
        from allennlp_models.rc.models.utils import get_best_span

        torch.manual_seed(0)
        start, end = torch.randn(2, 16, 30).log_softmax(-1)
        assert torch.equal(best_span(start, end, 30)[0], get_best_span(start, end))
