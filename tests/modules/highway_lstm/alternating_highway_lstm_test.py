import re

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.seq2seq_encoders import StackedAlternatingLstmSeq2SeqEncoder

from elmo_tasks.modules import AlternatingHighwayLstm

LENGTHS = [3, 7, 1, 5]


def masked(lengths: list[int]) -> torch.Tensor:
    return torch.arange(max(lengths, default=0)) < torch.tensor(lengths).unsqueeze(-1)


def names_of_allennlp(ours: str) -> str:
    """`layers.3.input_weight` is `_module.layer_3.cell.input_linearity.weight`."""
    layer, part, kind = re.fullmatch(r"layers\.(\d+)\.(input|state)_(weight|bias)", ours).groups()
    return f"_module.layer_{layer}.cell.{part}_linearity.{kind}"


def both(n_layers: int = 3, dropout: float = 0.0, bias: bool = False) -> tuple[Seq2SeqEncoder, Seq2SeqEncoder]:
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
        """Oracle: `alternating_lstm` with the same weights: outputs and all gradients, in float64."""
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
    def test_dropout_is_that_of_allennlp(self, dropout):
        """Oracle: `alternating_lstm` with the same random numbers; sentences of one length could change places."""
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
            torch.testing.assert_close(gradient, by_name[names_of_allennlp(name)], rtol=1e-6, atol=1e-6)
        assert not torch.equal(ours(inputs, mask), ours(inputs, mask))
        ours.eval(), theirs.eval()
        torch.testing.assert_close(ours(inputs, mask), theirs(inputs, mask))

    @pytest.mark.parametrize("dropout", [0.0, 0.5])
    def test_gradients_are_those_of_the_formula(self, dropout):
        """Oracle: torch's `gradcheck`, by differences, for the inputs and all weights."""
        encoder = AlternatingHighwayLstm(3, 2, 3, dropout, use_input_projection_bias=True).double().train()
        mask = masked([2, 4, 0, 1])
        parameters = {name: parameter.detach() for name, parameter in encoder.named_parameters()}

        def run(inputs: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
            torch.manual_seed(3)
            return torch.func.functional_call(encoder, dict(zip(parameters, weights, strict=True)), (inputs, mask))

        inputs = torch.randn(*mask.shape, 3, dtype=torch.float64)
        arguments = [tensor.clone().normal_().requires_grad_() for tensor in (inputs, *parameters.values())]
        assert torch.autograd.gradcheck(run, arguments)

    def test_padding_changes_nothing_and_is_zero(self):
        """Oracle: each sentence alone; values in the padding have no influence and no gradient."""
        encoder, _ = both(4)
        mask = masked(LENGTHS)
        inputs = torch.randn(*mask.shape, 6, dtype=torch.float64, requires_grad=True)
        outputs = encoder(inputs, mask)
        assert not outputs[~mask].any()
        for row, length in enumerate(LENGTHS):
            alone = encoder(inputs[row : row + 1, :length])
            torch.testing.assert_close(outputs[row, :length], alone[0])
        outputs.sum().backward()
        assert not inputs.grad[~mask].any()
        assert inputs.grad[mask].all()

    @pytest.mark.parametrize("lengths", [[0], [0, 0], [0, 2, 0], []], ids=str)
    def test_sentences_may_be_empty(self, lengths):
        """Oracle: the sentences with words alone, and zero elsewhere; a gradient for everything."""
        encoder, _ = both(2, dropout=0.5)
        mask = masked(lengths)
        inputs = torch.randn(*mask.shape, 6, dtype=torch.float64, requires_grad=True)
        encoder.train()(inputs, mask).sum().backward()
        outputs = encoder.eval()(inputs, mask)
        assert outputs.shape == (*mask.shape, 4)
        for row, length in enumerate(lengths):
            if length:
                torch.testing.assert_close(outputs[row, :length], encoder(inputs[row : row + 1, :length])[0])
        assert all(parameter.grad is not None for parameter in encoder.parameters())

    def test_even_layers_see_earlier_words_and_odd_ones_later_words(self):
        """Oracle: by hand: the outputs of one and of two layers that change with a word in the middle."""
        inputs = torch.randn(1, 5, 6, dtype=torch.float64)
        changed = inputs.clone()
        changed[0, 2] += 1.0
        for n_layers, expected in ((1, [False, False, True, True, True]), (2, [True] * 5)):
            encoder, _ = both(n_layers)
            assert (encoder(inputs) != encoder(changed)).any(-1)[0].tolist() == expected
        second = encoder.layers[1]
        encoder.layers = torch.nn.ModuleList([second])
        narrow = torch.randn(1, 5, 4, dtype=torch.float64)
        changed = narrow.clone()
        changed[0, 2] += 1.0
        assert (encoder(narrow) != encoder(changed)).any(-1)[0].tolist() == [True, True, True, False, False]

    def test_it_begins_orthonormal_with_open_forget_gates(self):
        """Oracle: each gate's block times its transpose is the identity; section A.5 of the paper."""
        encoder = AlternatingHighwayLstm(5, 5, 2, use_input_projection_bias=True)
        for layer in encoder.layers:
            for block in [*layer.input_weight.chunk(6), *layer.state_weight.chunk(5)]:
                torch.testing.assert_close(block @ block.t(), torch.eye(5), rtol=1e-5, atol=1e-5)
            assert layer.state_bias.tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 15
            assert not layer.input_bias.any()
        assert AlternatingHighwayLstm(5, 5, 1).layers[0].input_bias is None

    def test_words_after_padding_are_an_error(self):
        """Oracle: the message names the sentence and the positions."""
        encoder = AlternatingHighwayLstm(6, 4, 1)
        mask = torch.tensor([[True, True, False], [True, False, True]])
        with pytest.raises(ValueError, match=r"sentence 1 has words at positions \[0, 2\]: pad on the right"):
            encoder(torch.zeros(2, 3, 6), mask)

    @pytest.mark.parametrize("bias", [False, True])
    def test_under_autocast_to_bfloat16_it_keeps_the_type_of_its_weights(self, bias):
        """Oracle: outputs and gradients in float32: of nearly the same direction, but not the same."""
        torch.manual_seed(0)
        encoder = AlternatingHighwayLstm(20, 30, 3, use_input_projection_bias=bias)
        mask = masked([9, 14, 2, 14])
        results = []
        for enabled in (False, True):
            encoder.zero_grad()
            torch.manual_seed(1)
            inputs = torch.randn(*mask.shape, 20, requires_grad=True)
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                outputs = encoder(inputs, mask)
            outputs.backward(torch.randn(outputs.shape))
            results.append([outputs.detach(), inputs.grad, *(each.grad for each in encoder.parameters())])
        for exact, found in zip(*results, strict=True):
            assert found.dtype == torch.float32
            assert 1e-6 < (found - exact).norm() / exact.norm() < 0.02
            assert torch.cosine_similarity(found.flatten(), exact.flatten(), 0) > 0.9995

    def test_autocast_to_another_type_changes_nothing(self):
        """Oracle: the outputs and gradients without autocast, in float32; float64 under bfloat16."""
        for dtype, autocast in ((torch.float32, torch.float16), (torch.float64, torch.bfloat16)):
            encoder = AlternatingHighwayLstm(6, 4, 2).to(dtype)
            inputs = torch.randn(2, 3, 6).to(dtype)
            found = []
            for enabled in (False, True):
                encoder.zero_grad()
                with torch.autocast("cpu", autocast, enabled=enabled):
                    outputs = encoder(inputs)
                outputs.sum().backward()
                found.append((outputs, encoder.layers[0].state_weight.grad.clone()))
            torch.testing.assert_close(*found)

    @pytest.mark.parametrize(
        ("wrong", "rule"),
        [
            ({"hidden_size": 0}, "hidden_size .* at least 1, but is 0"),
            ({"num_layers": -1}, "num_layers .* at least 1, but is -1"),
            ({"recurrent_dropout_probability": 1.0}, "at least 0 and below 1, but is 1.0"),
        ],
    )
    def test_wrong_sizes_are_errors(self, wrong, rule):
        """Oracle: the message says rule and value."""
        with pytest.raises(ConfigurationError, match=rule):
            AlternatingHighwayLstm(**{"input_size": 3, "hidden_size": 3, "num_layers": 3, **wrong})

    def test_it_is_made_from_a_config(self, environment):
        """Oracle: the name in AllenNLP's registry, and the widths."""
        params = {"type": "elmo_alternating_highway_lstm", "input_size": 7, "hidden_size": 3, "num_layers": 2}
        encoder = Seq2SeqEncoder.from_params(Params(params))
        assert isinstance(encoder, AlternatingHighwayLstm)
        assert (encoder.get_input_dim(), encoder.get_output_dim(), encoder.is_bidirectional()) == (7, 3, False)
