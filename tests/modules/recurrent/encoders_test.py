import copy
import pickle

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2SeqEncoder
from allennlp.nn.util import get_final_encoder_states

from elmo_tasks.modules import GruEncoder, LstmEncoder

NAMES = ["lstm", "gru"]
LENGTHS = [3, 7, 0, 1, 7, 5]


def masked(lengths: list[int], padding: int = 0) -> torch.Tensor:
    return torch.arange(max(lengths, default=0) + padding) < torch.tensor(lengths, dtype=torch.long).unsqueeze(-1)


def both(name: str, dtype: torch.dtype = torch.float64, **options) -> tuple[Seq2SeqEncoder, Seq2SeqEncoder]:
    """Ours and AllenNLP's, of the same options and random weights, from configs."""
    torch.manual_seed(0)
    options = {"input_size": 6, "hidden_size": 4, "bidirectional": True} | options
    ours, theirs = (Seq2SeqEncoder.from_params(Params({"type": kind, **options})) for kind in (f"elmo_{name}", name))
    for parameter in ours.parameters():
        parameter.data.normal_()
    theirs.load_state_dict(ours.state_dict())
    return ours.to(dtype), theirs.to(dtype)


def computed(encoder: Seq2SeqEncoder, mask: torch.Tensor | None, shape: tuple[int, ...], dtype=torch.float64):
    """Outputs, and the gradients of the inputs and of all parameters, of random inputs and gradients."""
    torch.manual_seed(1)
    inputs = torch.randn(*shape, encoder.get_input_dim(), dtype=dtype, requires_grad=True)
    outputs = encoder(inputs, mask)
    outputs.backward(torch.randn(outputs.shape).to(dtype))
    return outputs.detach(), inputs.grad, {name: parameter.grad for name, parameter in encoder.named_parameters()}


@pytest.fixture
def uses_ours(monkeypatch):
    """All batches that our code can compute are left to it."""
    monkeypatch.setattr(LstmEncoder, "_is_left_to_torch", lambda *_: False)
    monkeypatch.setattr(GruEncoder, "_is_left_to_torch", lambda *_: False)


@pytest.mark.parametrize("name", NAMES)
class TestRecurrentEncoder:
    @pytest.mark.parametrize("bidirectional", [True, False])
    @pytest.mark.parametrize("n_layers", [1, 3])
    @pytest.mark.parametrize("lengths", [LENGTHS, [1], [1, 1], [6, 6, 6], [1, 9], [9]], ids=str)
    def test_it_is_the_encoder_of_allennlp(self, name, lengths, n_layers, bidirectional, uses_ours):
        """Oracle: AllenNLP's encoder with the same weights: outputs, last states and all gradients, in float64."""
        ours, theirs = both(name, num_layers=n_layers, bidirectional=bidirectional)
        mask = masked(lengths, padding=1)
        found, expected = (computed(encoder, mask, mask.shape) for encoder in (ours, theirs))
        torch.testing.assert_close(found, expected)
        if all(lengths):
            last, oracle = (get_final_encoder_states(part[0], mask, bidirectional) for part in (found, expected))
            torch.testing.assert_close(last, oracle)

    @pytest.mark.parametrize("options", [{"bias": False}, {"hidden_size": 1}, {"input_size": 1}], ids=str)
    def test_sizes_of_one_and_no_bias(self, name, options, uses_ours):
        """Oracle: AllenNLP's encoder, as above."""
        mask = masked(LENGTHS)
        found, expected = (computed(encoder, mask, mask.shape) for encoder in both(name, num_layers=2, **options))
        torch.testing.assert_close(found, expected)

    @pytest.mark.parametrize("lengths", [[40, 33, 12, 5, 5], [20] * 8], ids=["mixed", "equal"])
    def test_float32_is_as_exact_as_that_of_torch(self, name, lengths):
        """Oracle: AllenNLP's encoder in float32: 1e-5 of the largest value of each tensor, of 90 units."""
        torch.manual_seed(0)
        options = {"input_size": 30, "hidden_size": 90, "bidirectional": True}
        ours, theirs = (
            Seq2SeqEncoder.from_params(Params({"type": kind, **options})) for kind in (f"elmo_{name}", name)
        )
        ours.load_state_dict(theirs.state_dict())
        mask = masked(lengths)
        found, expected = (computed(encoder, mask, mask.shape, torch.float32) for encoder in (ours, theirs))
        for one, other in zip((*found[:2], *found[2].values()), (*expected[:2], *expected[2].values()), strict=True):
            torch.testing.assert_close(one, other, rtol=0.0, atol=1e-5 * float(other.abs().max().clamp(min=1.0)))

    def test_without_a_mask_all_are_words(self, name, uses_ours):
        """Oracle: AllenNLP's encoder without a mask."""
        found, expected = (computed(encoder, None, (3, 4)) for encoder in both(name))
        torch.testing.assert_close(found, expected)

    def test_layers_have_the_dropout_of_torch(self, name):
        """Oracle: AllenNLP's encoder from the same random state, on sentences that it packs in the same order."""
        mask, results = masked([6, 4, 3]), []
        for encoder in both(name, num_layers=3, dropout=0.5):
            torch.manual_seed(2)
            inputs = torch.ones(*mask.shape, 6, dtype=torch.float64, requires_grad=True)
            outputs = [encoder.train(mode)(inputs, mask) for mode in (True, True, False)]
            assert not torch.equal(*outputs[:2])
            results.append(outputs)
        torch.testing.assert_close(*results)

    def test_checkpoints_are_those_of_allennlp(self, name):
        """Oracle: names, shapes and order of AllenNLP's parameters; each loads the other's strictly."""
        ours, theirs = both(name, num_layers=2)
        assert [(key, value.shape) for key, value in ours.state_dict().items()] == [
            (key, value.shape) for key, value in theirs.state_dict().items()
        ]
        torch.nn.init.normal_(theirs._module.weight_hh_l1_reverse)
        ours.load_state_dict(theirs.state_dict())
        assert torch.equal(ours._module.weight_hh_l1_reverse, theirs._module.weight_hh_l1_reverse)

    def test_it_begins_with_the_random_weights_of_allennlp(self, name):
        """Oracle: AllenNLP's encoder, made from the same random state."""
        made = []
        for kind in (f"elmo_{name}", name):
            torch.manual_seed(3)
            made.append(Seq2SeqEncoder.from_params(Params({"type": kind, "input_size": 3, "hidden_size": 2})))
        torch.testing.assert_close(made[0].state_dict(), made[1].state_dict(), rtol=0, atol=0)

    def test_a_copy_computes_the_same(self, name):
        """Oracle: the original."""
        ours, _ = both(name)
        mask = masked(LENGTHS)
        expected = computed(ours, mask, mask.shape)[0]
        for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
            torch.testing.assert_close(computed(again, mask, mask.shape)[0], expected, rtol=0, atol=0)

    def test_a_carried_state_is_that_of_allennlp(self, name):
        """Oracle: AllenNLP's stateful encoder over two batches."""
        mask = masked([3, 2])
        results = [[computed(encoder, mask, mask.shape)[0] for _ in "ab"] for encoder in both(name, stateful=True)]
        torch.testing.assert_close(*results)
        assert not torch.equal(*results[0])

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_half_precision_is_that_of_torch(self, name, dtype):
        """Oracle: AllenNLP's encoder in the same type."""
        mask = masked([4, 2])
        found, expected = (computed(encoder, mask, mask.shape, dtype) for encoder in both(name, dtype))
        assert found[0].dtype == dtype
        torch.testing.assert_close(found, expected, rtol=0, atol=0)

    @pytest.mark.parametrize("lengths", [[40, 33, 12, 5, 5], [20] * 8], ids=["mixed", "equal"])
    def test_autocast_to_bfloat16_rounds_what_is_computed_for_all_words(self, name, lengths):
        """Oracle: float32: outputs and gradients have its type and nearly its direction, but are not the same."""
        ours, _ = both(name, torch.float32, input_size=30, hidden_size=40, num_layers=2)
        for parameter in ours.parameters():
            parameter.data.mul_(0.2)
        mask, results = masked(lengths, padding=1), []
        for enabled in (False, True):
            ours.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                outputs, d_inputs, d_parameters = computed(ours, mask, mask.shape, torch.float32)
            results.append([outputs, d_inputs, *d_parameters.values()])
        for exact, found in zip(*results, strict=True):
            assert found.dtype == torch.float32
            assert 1e-6 < (found - exact).norm() / exact.norm() < 0.02
            assert torch.cosine_similarity(found.flatten(), exact.flatten(), 0) > 0.9995

    @pytest.mark.parametrize("lengths", [[4, 2], [4, 4]], ids=str)
    @pytest.mark.parametrize(
        ("autocast", "dtype", "with_gradients"),
        [
            (torch.bfloat16, torch.float32, False),
            (torch.bfloat16, torch.float64, True),
            (torch.float16, torch.float32, True),
        ],
        ids=["evaluation", "float64", "float16"],
    )
    def test_other_autocast_leaves_the_type_of_the_parameters(self, name, lengths, autocast, dtype, with_gradients):
        """Oracle: the same without autocast, from inputs that autocast's type holds exactly."""
        ours, _ = both(name, dtype)
        mask = masked(lengths)
        inputs = torch.randn(*mask.shape, 6).to(autocast)
        expected = ours(inputs.to(dtype), mask)
        with torch.autocast("cpu", autocast), torch.set_grad_enabled(with_gradients):
            found = ours(inputs, mask)
        assert found.dtype == dtype
        torch.testing.assert_close(found, expected)

    def test_backward_inside_of_autocast_is_that_outside(self, name):
        """Oracle: the gradients of a backward pass outside of it, which is how AllenNLP trains."""
        ours, _ = both(name, torch.float32)
        mask, results = masked([4, 2]), []
        for inside in (False, True):
            ours.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = ours(torch.ones(*mask.shape, 6), mask).sum()
                if inside:
                    loss.backward()
            if not inside:
                loss.backward()
            results.append([parameter.grad for parameter in ours.parameters()])
        torch.testing.assert_close(*results, rtol=0, atol=0)

    @pytest.mark.parametrize("lengths", [[0, 0], []], ids=str)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
    def test_a_batch_without_words_is_zero_and_trains_nothing(self, name, lengths, dtype):
        """Oracle: zeros of the shape of the outputs, and gradients of zero."""
        ours, _ = both(name, dtype)
        mask = masked(lengths, padding=3)
        outputs, d_inputs, d_parameters = computed(ours, mask, mask.shape, dtype)
        assert torch.equal(outputs, torch.zeros(len(lengths), 3, 8, dtype=dtype))
        assert not any(gradient.any() for gradient in (d_inputs, *d_parameters.values()))

    def test_nan_stays_in_its_sentence(self, name):
        """Oracle: the same batch without it: other sentences, their gradients, and padding are unchanged."""
        ours, _ = both(name)
        mask = masked([4, 6, 5], padding=1)
        results = []
        for value in (0.0, float("nan")):
            inputs = torch.ones(*mask.shape, 6, dtype=torch.float64)
            inputs[1, 2] = inputs[0, 4] = value  # A word of sentence 1, and padding of sentence 0.
            inputs.requires_grad_()
            outputs = ours(inputs, mask)
            outputs[[0, 2]].sum().backward()
            results.append((outputs[[0, 2]].detach(), inputs.grad[[0, 2]]))
        torch.testing.assert_close(*results, rtol=0, atol=0)
        assert outputs[1, :6].isnan().any() and not outputs[1, 6].any()

    def test_no_graph_is_kept_where_no_gradient_is_wanted(self, name):
        """Oracle: `requires_grad` of the outputs, and outputs with a graph."""
        ours, _ = both(name)
        mask = masked(LENGTHS)
        inputs = torch.randn(*mask.shape, 6, dtype=torch.float64)
        expected = ours(inputs, mask)
        assert expected.requires_grad
        with torch.no_grad():
            one = ours(inputs, mask)
        other = ours.requires_grad_(False)(inputs, mask)
        assert not one.requires_grad and not other.requires_grad
        torch.testing.assert_close([one, other], [expected.detach()] * 2)

    @pytest.mark.parametrize("trained", ["inputs", "weight_hh_l0", "bias_ih_l0_reverse"])
    def test_only_what_is_trained_has_a_gradient(self, name, trained, uses_ours):
        """Oracle: the gradient where all is trained."""
        ours, _ = both(name)
        mask = masked(LENGTHS)
        _, d_inputs, d_parameters = computed(ours, mask, mask.shape)
        expected = d_inputs if trained == "inputs" else d_parameters[f"_module.{trained}"].clone()
        ours.zero_grad()
        ours.requires_grad_(False)
        torch.manual_seed(1)
        inputs = torch.randn(*mask.shape, 6, dtype=torch.float64)
        wanted = (inputs if trained == "inputs" else getattr(ours._module, trained)).requires_grad_()
        outputs = ours(inputs, mask)
        outputs.backward(torch.randn(outputs.shape).double())
        torch.testing.assert_close(wanted.grad, expected)
        assert sum(tensor.grad is not None for tensor in (inputs, *ours.parameters())) == 1

    def test_gradients_can_be_computed_twice_and_are_added(self, name, uses_ours):
        """Oracle: twice the gradient of one pass."""
        ours, _ = both(name)
        mask = masked(LENGTHS)
        _, once, _ = computed(ours, mask, mask.shape)
        torch.manual_seed(1)
        inputs = torch.randn(*mask.shape, 6, dtype=torch.float64, requires_grad=True)
        outputs = ours(inputs, mask)
        direction = torch.randn(outputs.shape).double()
        outputs.backward(direction, retain_graph=True)
        outputs.backward(direction)
        torch.testing.assert_close(inputs.grad, 2 * once)

    def test_a_second_derivative_is_an_error(self, name, uses_ours):
        """Oracle: the rule; the gradient itself may be asked for with a graph."""
        ours, _ = both(name)
        mask = masked(LENGTHS)
        inputs = torch.randn(*mask.shape, 6, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(ours(inputs, mask).sum(), inputs, create_graph=True)
        with pytest.raises(RuntimeError, match=r"no second derivatives on a CPU.*use AllenNLP's 'lstm' or 'gru'"):
            gradient.square().sum().backward()

    def test_torch_compile_compiles_the_layers_of_torch(self, name):
        """Oracle: the same without it."""
        ours, _ = both(name, torch.float32)
        mask = masked([4, 2])
        inputs = torch.randn(*mask.shape, 6)
        found = torch.compile(ours, backend="eager")(inputs, mask)
        torch.testing.assert_close(found, ours(inputs, mask))

    def test_data_parallel_is_the_module_on_a_cpu(self, name):
        """Oracle: the module alone."""
        ours, _ = both(name)
        mask = masked(LENGTHS)
        inputs = torch.randn(*mask.shape, 6, dtype=torch.float64)
        torch.testing.assert_close(torch.nn.DataParallel(ours)(inputs, mask), ours(inputs, mask))

    @pytest.mark.parametrize(
        ("shape", "mask_shape", "message"),
        [
            ((2, 3, 5), (2, 3), r"inputs of elmo_\w+ must have the shape \(batch_size, timesteps, 6\), but have"),
            ((3, 6), (3,), r"inputs of elmo_\w+ must have the shape"),
            ((2, 3, 6), (2, 4), r"mask of elmo_\w+ must have the shape \(2, 3\) of its inputs, but has \(2, 4\)"),
        ],
    )
    def test_wrong_shapes_are_an_error(self, name, shape, mask_shape, message):
        """Oracle: the rule."""
        ours, _ = both(name)
        with pytest.raises(ValueError, match=message):
            ours(torch.randn(shape).double(), torch.ones(mask_shape, dtype=torch.bool))

    def test_another_type_is_an_error(self, name):
        """Oracle: the rule, as in torch."""
        ours, _ = both(name)
        with pytest.raises(ValueError, match=r"type of its parameters, torch.float64, but have torch.float32"):
            ours(torch.randn(2, 3, 6), masked([3, 2]))

    @pytest.mark.parametrize("with_gradients", [True, False])
    def test_words_after_padding_are_an_error(self, name, with_gradients):
        """Oracle: the rule."""
        ours, _ = both(name)
        mask = torch.tensor([[True, True, True], [True, False, True]])
        with torch.set_grad_enabled(with_gradients), pytest.raises(ValueError, match="must come before its padding"):
            ours(torch.randn(2, 3, 6).double(), mask)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"hidden_size": 0}, r"hidden_size of elmo_\w+ must be at least 1, but is 0"),
            ({"input_size": -1}, r"input_size of elmo_\w+ must be at least 1"),
            ({"num_layers": 0}, r"num_layers of elmo_\w+ must be at least 1"),
            ({"dropout": 1.5}, r"dropout of elmo_\w+ must be from 0 to 1, but is 1.5"),
        ],
    )
    def test_wrong_options_are_an_error(self, name, options, message):
        """Oracle: the rule."""
        with pytest.raises(ConfigurationError, match=message):
            both(name, **options)


class TestChoice:
    @pytest.mark.parametrize(
        ("name", "lengths", "dtype", "with_gradients", "is_ours"),
        [
            ("lstm", [4, 2], torch.float32, True, True),
            ("lstm", [4, 4], torch.float32, True, False),
            ("lstm", [4, 4], torch.float64, True, True),
            ("lstm", [4, 2], torch.float32, False, False),
            ("gru", [4, 4], torch.float32, True, True),
            ("gru", [4, 2], torch.float32, False, False),
            ("gru", [4, 2], torch.bfloat16, True, False),
        ],
    )
    def test_the_faster_one_computes(self, name, lengths, dtype, with_gradients, is_ours, monkeypatch):
        """Oracle: the table that `benchmarks/encoders.py` gives; torch fuses layers over one length."""
        if not torch.backends.mkldnn.is_available():
            pytest.skip("torch without oneDNN has no fused layer")
        ours, _ = both(name, dtype)
        ran = []
        run = type(ours)._run
        monkeypatch.setattr(type(ours), "_run", lambda *arguments: ran.append(1) or run(*arguments))
        mask = masked(lengths)
        with torch.set_grad_enabled(with_gradients):
            ours(torch.randn(*mask.shape, 6).to(dtype), mask)
        assert bool(ran) is is_ours

    def test_one_length_is_ours_under_autocast(self, monkeypatch):
        """Oracle: the choice: torch's layer would round what passes from word to word too."""
        ours, _ = both("lstm", torch.float32)
        ran = []
        run = LstmEncoder._run
        monkeypatch.setattr(LstmEncoder, "_run", lambda *arguments: ran.append(1) or run(*arguments))
        with torch.autocast("cpu", torch.bfloat16):
            ours(torch.randn(2, 4, 6), masked([4, 4]))
        assert ran == [1]
