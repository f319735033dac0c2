import pytest
import torch
from allennlp.common import Params
from allennlp.modules import Seq2SeqEncoder

import elmo_tasks.modules  # noqa: F401

NAMES = ["lstm", "gru"]
LENGTHS = [3, 7, 2, 1, 7, 5]


def masked(lengths: list[int], padding: int = 0) -> torch.Tensor:
    return torch.arange(max(lengths, default=0) + padding) < torch.tensor(
        lengths, dtype=torch.long
    ).unsqueeze(-1)


def both(
    name: str, dtype: torch.dtype = torch.float64, **options
) -> tuple[Seq2SeqEncoder, Seq2SeqEncoder]:
    """Ours and AllenNLP's, from configs with the same options, with equal random weights."""
    torch.manual_seed(0)
    options = {"input_size": 6, "hidden_size": 4, "bidirectional": True} | options
    ours, theirs = (
        Seq2SeqEncoder.from_params(Params({"type": kind, **options}))
        for kind in (f"elmo_{name}", name)
    )
    for parameter in ours.parameters():
        parameter.data.normal_()
    theirs.load_state_dict(ours.state_dict())
    return ours.to(dtype), theirs.to(dtype)


def computed(
    encoder: Seq2SeqEncoder, mask: torch.Tensor | None, shape: tuple[int, ...], dtype=torch.float64
):
    """
    The outputs for random inputs, and the gradients of inputs and parameters for random output
    gradients.
    """
    torch.manual_seed(1)
    inputs = torch.randn(*shape, encoder.get_input_dim(), dtype=dtype, requires_grad=True)
    outputs = encoder(inputs, mask)
    outputs.backward(torch.randn(outputs.shape).to(dtype))
    return (
        outputs.detach(),
        inputs.grad,
        {name: parameter.grad for name, parameter in encoder.named_parameters()},
    )


@pytest.mark.parametrize("name", NAMES)
class TestRecurrentEncoder:
    @pytest.mark.parametrize("bidirectional", [True, False])
    @pytest.mark.parametrize("n_layers", [1, 3])
    @pytest.mark.parametrize("lengths", [LENGTHS, [1], [1, 1], [6, 6, 6], [1, 9], [9]], ids=str)
    def test_it_is_the_encoder_of_allennlp(self, name, lengths, n_layers, bidirectional):
        ours, theirs = both(name, num_layers=n_layers, bidirectional=bidirectional)
        mask = masked(lengths, padding=1)
        found, expected = (computed(encoder, mask, mask.shape) for encoder in (ours, theirs))
        torch.testing.assert_close(found, expected)

    @pytest.mark.parametrize(
        "options", [{"bias": False}, {"hidden_size": 1}, {"input_size": 1}], ids=str
    )
    def test_sizes_of_one_and_no_bias(self, name, options):
        mask = masked(LENGTHS)
        found, expected = (
            computed(encoder, mask, mask.shape) for encoder in both(name, num_layers=2, **options)
        )
        torch.testing.assert_close(found, expected)

    @pytest.mark.parametrize("lengths", [[40, 33, 12, 5, 5], [20] * 8], ids=["mixed", "equal"])
    def test_float32_is_as_exact_as_torchs(self, name, lengths):
        torch.manual_seed(0)
        options = {"input_size": 30, "hidden_size": 90, "bidirectional": True}
        ours, theirs = (
            Seq2SeqEncoder.from_params(Params({"type": kind, **options}))
            for kind in (f"elmo_{name}", name)
        )
        ours.load_state_dict(theirs.state_dict())
        mask = masked(lengths)
        found, expected = (
            computed(encoder, mask, mask.shape, torch.float32) for encoder in (ours, theirs)
        )
        for one, other in zip(
            (*found[:2], *found[2].values()), (*expected[:2], *expected[2].values()), strict=True
        ):
            torch.testing.assert_close(
                one, other, rtol=0.0, atol=1e-5 * float(other.abs().max().clamp(min=1.0))
            )

    def test_dropout_between_layers_matches_torch(self, name):
        """The sentences are in AllenNLP's packing order, so both draw the same masks."""
        mask, results = masked([6, 4, 3]), []
        for encoder in both(name, num_layers=3, dropout=0.5):
            torch.manual_seed(2)
            inputs = torch.ones(*mask.shape, 6, dtype=torch.float64, requires_grad=True)
            outputs = [encoder.train(mode)(inputs, mask) for mode in (True, True, False)]
            assert not torch.equal(*outputs[:2])
            results.append(outputs)
        torch.testing.assert_close(*results)

    def test_a_carried_state_matches_allennlp(self, name):
        mask = masked([3, 2])
        results = [
            [computed(encoder, mask, mask.shape)[0] for _ in "ab"]
            for encoder in both(name, stateful=True)
        ]
        torch.testing.assert_close(*results)
        assert not torch.equal(*results[0])
