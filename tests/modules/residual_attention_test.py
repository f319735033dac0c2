import numpy as np
import pytest
import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import GruSeq2SeqEncoder

from elmo_tasks.modules import ResidualAttention
from tests.modules.bidaf_attention_test import softmax

DIM, HIDDEN = 7, 4


def attention(x: np.ndarray, h: np.ndarray, w: np.ndarray, linear: torch.nn.Linear) -> np.ndarray:
    """The formulas of the docstring for one text without padding, word by word."""
    rows = []
    for i, h_i in enumerate(h):
        others = [j for j in range(len(h)) if j != i]
        scores = [w @ np.concatenate([h_i, h[j], h_i * h[j]]) for j in others]
        a_i = softmax(np.array(scores)) @ h[others] if others else np.zeros_like(h_i)
        z = linear.weight.numpy() @ np.concatenate([h_i, a_i, h_i * a_i]) + linear.bias.numpy()
        rows.append(x[i] + np.maximum(z, 0))
    return np.stack(rows)


@pytest.fixture
def module() -> ResidualAttention:
    torch.manual_seed(0)
    encoder: Seq2SeqEncoder = GruSeq2SeqEncoder(DIM, HIDDEN // 2, bidirectional=True)
    return ResidualAttention(encoder, dropout=0.2).double().requires_grad_(False)


class TestResidualAttention:
    @pytest.mark.parametrize("lengths", [(8, 3, 1), (1,), (1, 1), (2, 5)], ids=str)
    def test_it_computes_the_formulas(self, module, lengths):
        """Oracle: the formulas in NumPy on the output of the encoder for each text alone; texts of one word too."""
        text = torch.randn(len(lengths), max(lengths), DIM).double()
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        found = module.eval()(text, mask).numpy()
        weights = module.similarity._weight_vector.numpy()
        for row, length in enumerate(lengths):
            alone = text[row : row + 1, :length]
            hidden = module.encoder(alone, mask[row : row + 1, :length])[0].numpy()
            expected = attention(alone[0].numpy(), hidden, weights, module.projection)
            np.testing.assert_allclose(found[row, :length], expected, rtol=1e-7, atol=1e-12)

    def test_the_encoder_and_the_linear_layer_have_their_inputs_dropped_out(self, module):
        """Oracle: the zeroes: the same units at all words, about 0.2 of many."""
        inputs: list[torch.Tensor] = []
        for part in (module.encoder, module.projection):
            part.register_forward_pre_hook(lambda module, args: inputs.append(args[0]))
        module.train()(torch.randn(200, 3, DIM).double(), torch.ones(200, 3, dtype=torch.bool))
        assert [tensor.shape[-1] for tensor in inputs] == [DIM, 3 * HIDDEN]
        for tensor in inputs:
            dropped = tensor == 0
            assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
            assert 0.15 < dropped.double().mean() < 0.25

    def test_the_backward_pass_keeps_one_tensor_of_pairs(self, module):
        """Oracle: the sizes of the tensors that autograd keeps: for the pairs, weights and a mask of one byte each."""
        kept: dict[int, int] = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.numel() >= n_pairs:
                kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor

        n_words = 200
        n_pairs = 2 * n_words**2
        mask = torch.ones(2, n_words, dtype=torch.bool)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            module.requires_grad_(True)(torch.randn(2, n_words, DIM).double(), mask)
        assert sum(kept.values()) <= n_pairs * (8 + 1)
