from collections.abc import Iterator

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules import Seq2VecEncoder
from allennlp.modules.seq2vec_encoders import CnnEncoder
from allennlp.nn import Activation
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.modules import UnpaddedCnn

DIM = 3


@pytest.fixture(autouse=True, scope="module")
def double_precision() -> Iterator[None]:
    """AllenNLP's mask has the default type, and overflows in float64 if that is float32."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def both(dtype: torch.dtype = torch.float64, **kwargs) -> tuple[UnpaddedCnn, CnnEncoder]:
    torch.manual_seed(0)
    ours, theirs = (cnn(DIM, 5, **kwargs).to(dtype) for cnn in (UnpaddedCnn, CnnEncoder))
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def batch(lengths: list[int], timesteps: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.arange(timesteps) < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), timesteps, DIM, dtype=dtype, requires_grad=True), mask


def results(encoder: Seq2VecEncoder, tokens: torch.Tensor, mask: torch.Tensor | None) -> list[torch.Tensor]:
    """Output, and gradients with respect to tokens and parameters."""
    output = encoder(tokens, mask)
    return [output, *torch.autograd.grad((output**2).sum() + output.sum(), [tokens, *encoder.parameters()])]


class TestUnpaddedCnn:
    @settings(max_examples=20)
    @given(
        st.lists(st.integers(0, 8), min_size=1, max_size=9),
        st.sampled_from([(1,), (3,), (2, 3, 5)]),
        st.sampled_from(["relu", "tanh", "swish", "linear"]),
        st.sampled_from([None, 4]),
    )
    def test_it_equals_allennlps(self, lengths, widths, activation, output_dim):
        """Oracle: AllenNLP's `cnn` with its weights, values and gradients; short and empty words among the others."""
        ours, theirs = both(
            ngram_filter_sizes=widths, conv_layer_activation=Activation.by_name(activation)(), output_dim=output_dim
        )
        tokens, mask = batch(lengths, 8)
        torch.testing.assert_close(results(ours, tokens, mask), results(theirs, tokens, mask), rtol=1e-9, atol=1e-12)

    def test_it_equals_allennlps_in_single_precision(self):
        """Oracle: AllenNLP's `cnn` in float64; 1e-6 of the largest value."""
        ours, _ = both(torch.float32, ngram_filter_sizes=(2, 3))
        _, theirs = both(ngram_filter_sizes=(2, 3))
        theirs.load_state_dict(ours.state_dict())
        tokens, mask = batch([9, 4, 1, 6, 6], 9, torch.float32)
        for found, expected in zip(results(ours, tokens, mask), results(theirs, tokens.double(), mask), strict=True):
            assert (found - expected).abs().max() <= 1e-6 * expected.abs().max()

    def test_the_mask_counts_words_as_allennlp_does(self):
        """Oracle: AllenNLP's `cnn`, with no mask, and with one that has gaps: the count of ones, and zeros in gaps."""
        ours, theirs = both(ngram_filter_sizes=(2,))
        tokens, _ = batch([6, 6], 6)
        gaps = torch.tensor([[1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1, 1]])
        for mask in (None, gaps):
            torch.testing.assert_close(results(ours, tokens, mask), results(theirs, tokens, mask))

    def test_nothing_to_convolve_gives_zeros(self):
        """Oracle: by hand: no words, or words that are all shorter than a filter; AllenNLP's raises an error."""
        ours, _ = both(ngram_filter_sizes=(3, 4))
        assert ours(torch.zeros(0, 5, DIM).double(), torch.ones(0, 5, dtype=torch.bool)).shape == (0, 10)
        for timesteps in (0, 2):
            output, *gradients = results(ours, *batch([timesteps, timesteps], timesteps))
            assert torch.equal(output, torch.zeros(2, 10).double())
            assert not any(gradient.any() for gradient in gradients)

    @settings(max_examples=20)
    @given(st.lists(st.integers(0, 8), min_size=1, max_size=9), st.sampled_from([(1,), (3,), (2, 3, 5)]))
    def test_with_partial_windows_a_word_has_as_many_as_characters(self, lengths, widths):
        """Oracle: AllenNLP's `cnn` on each word alone, with zeros behind it that its mask counts."""
        ours, theirs = both(ngram_filter_sizes=widths)
        ours._partial_windows = True
        tokens, mask = batch(lengths, 8)
        for index, length in enumerate(lengths):
            found = ours(tokens, mask)[index].split(5)
            for width, features in zip(widths, found, strict=True):
                if length == 0:
                    assert not features.any()
                    continue
                word = torch.cat([tokens[index, :length], tokens.new_zeros(width - 1, DIM)])[None]
                place = widths.index(width)
                expected = theirs(
                    torch.nn.functional.pad(word, (0, 0, 0, 8)), torch.arange(word.size(1) + 8)[None] < word.size(1)
                )
                torch.testing.assert_close(features, expected[0].split(5)[place], rtol=1e-9, atol=1e-12)

    def test_a_word_with_nan_stays_alone(self):
        """Oracle: the other words without it."""
        ours, _ = both(ngram_filter_sizes=(3,))
        tokens, mask = batch([5, 4, 5], 5)
        clean = ours(tokens, mask)
        with torch.no_grad():
            tokens[0, 1, 0] = torch.nan
        output = ours(tokens, mask)
        assert output[0].isnan().all()
        assert torch.equal(output[1:], clean[1:])

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_it_computes_in_half_precision(self, dtype):
        """Oracle: float64, to the type's precision."""
        ours, theirs = both(ngram_filter_sizes=(3,))
        tokens, mask = batch([5, 4, 2], 5)
        expected = theirs(tokens, mask)
        found = ours.to(dtype)(tokens.to(dtype), mask)
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), expected, rtol=0.05, atol=0.05)

    def test_it_has_second_derivatives(self):
        """Oracle: numerical ones."""
        ours, _ = both(ngram_filter_sizes=(2,), conv_layer_activation=Activation.by_name("tanh")())
        tokens, mask = batch([3, 2], 3)
        assert torch.autograd.gradgradcheck(lambda tokens: ours(tokens, mask), (tokens,))

    def test_it_is_made_from_a_config(self):
        """Oracle: AllenNLP's registry, and its parameters."""
        params = {"type": "elmo_cnn", "embedding_dim": 4, "num_filters": 6, "ngram_filter_sizes": [2, 3]}
        params["conv_layer_activation"] = "tanh"
        encoder = Seq2VecEncoder.from_params(Params(params | {"partial_windows": True}))
        assert isinstance(encoder, UnpaddedCnn)
        assert (
            encoder(torch.ones(1, 1, 4)).any()
            and not Seq2VecEncoder.from_params(Params(dict(params)))(torch.ones(1, 1, 4)).any()
        )
        assert (encoder.get_input_dim(), encoder.get_output_dim()) == (4, 12)
        with pytest.raises(ConfigurationError, match="Extra parameters"):
            Seq2VecEncoder.from_params(Params(params | {"num_filter": 1}))
