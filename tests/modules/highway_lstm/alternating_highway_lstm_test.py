import re

import pytest
import torch
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import StackedAlternatingLstmSeq2SeqEncoder

from elmo_tasks.modules import AlternatingHighwayLstm
from tests.modules.recurrent.encoders_test import masked

LENGTHS = [3, 7, 1, 5]


def names_of_allennlp(ours: str) -> str:
    """`layers.3.input_weight` becomes `_module.layer_3.cell.input_linearity.weight`."""
    layer, part, kind = re.fullmatch(r"layers\.(\d+)\.(input|state)_(weight|bias)", ours).groups()
    return f"_module.layer_{layer}.cell.{part}_linearity.{kind}"


def both(
    n_layers: int = 3, dropout: float = 0.0, bias: bool = False
) -> tuple[Seq2SeqEncoder, Seq2SeqEncoder]:
    """Ours and AllenNLP's with the same random weights, in float64."""
    torch.manual_seed(0)
    ours = AlternatingHighwayLstm(6, 4, n_layers, dropout, bias).double()
    theirs = StackedAlternatingLstmSeq2SeqEncoder(
        6, 4, n_layers, dropout, use_highway=True, use_input_projection_bias=bias
    ).double()
    weights = {}
    for name, parameter in ours.named_parameters():
        parameter.data.normal_()
        weights[names_of_allennlp(name)] = parameter.detach().clone()
    theirs.load_state_dict(weights)
    return ours, theirs


class TestAlternatingHighwayLstm:
    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize("n_layers", [1, 2, 5])
    @pytest.mark.parametrize("lengths", [LENGTHS, [4], [1, 1], [6, 6, 2], [1, 9]], ids=str)
    def test_it_is_the_alternating_lstm_of_allennlp(self, lengths, n_layers, bias):
        ours, theirs = both(n_layers, bias=bias)
        mask = masked(lengths)
        found = []
        for encoder in (ours, theirs):
            torch.manual_seed(1)
            inputs = torch.randn(*mask.shape, 6, dtype=torch.float64, requires_grad=True)
            outputs = encoder(inputs, mask)
            (outputs * torch.randn_like(outputs)).sum().backward()
            gradients = {name: parameter.grad for name, parameter in encoder.named_parameters()}
            found.append((outputs.detach(), inputs.grad, gradients))
        torch.testing.assert_close(found[0][:2], found[1][:2])
        for name, gradient in found[0][2].items():
            torch.testing.assert_close(gradient, found[1][2][names_of_allennlp(name)])

    @pytest.mark.parametrize("dropout", [0.1, 0.6])
    def test_dropout_matches_allennlp(self, dropout):
        """All lengths differ, because sentences of equal length could swap places."""
        ours, theirs = both(4, dropout=dropout)
        mask = masked(LENGTHS)
        inputs = torch.randn(*mask.shape, 6, dtype=torch.float64)
        found = []
        for encoder in (ours, theirs):
            torch.manual_seed(2)
            outputs = encoder.train()(inputs, mask)
            outputs.square().sum().backward()
            found.append((outputs.detach(), [parameter.grad for parameter in encoder.parameters()]))
        torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-6, atol=1e-6)
        by_name = dict(zip(dict(theirs.named_parameters()), found[1][1], strict=True))
        for (name, _), gradient in zip(ours.named_parameters(), found[0][1], strict=True):
            torch.testing.assert_close(
                gradient, by_name[names_of_allennlp(name)], rtol=1e-6, atol=1e-6
            )
        assert not torch.equal(ours(inputs, mask), ours(inputs, mask))
        ours.eval(), theirs.eval()
        torch.testing.assert_close(ours(inputs, mask), theirs(inputs, mask))

    def test_it_begins_orthonormal_with_open_forget_gates(self):
        """Section A.5 of the paper: each gate's block times its transpose is the identity."""
        encoder = AlternatingHighwayLstm(5, 5, 2, use_input_projection_bias=True)
        for layer in encoder.layers:
            for block in [*layer.input_weight.chunk(6), *layer.state_weight.chunk(5)]:
                torch.testing.assert_close(block @ block.t(), torch.eye(5), rtol=1e-5, atol=1e-5)
            assert layer.state_bias.tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 15
            assert not layer.input_bias.any()
        assert AlternatingHighwayLstm(5, 5, 1).layers[0].input_bias is None
