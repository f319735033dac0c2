import numpy as np
import pytest
import torch
from allennlp.modules.scalar_mix import ScalarMix
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.bilm import LayerMix
from elmo_tasks.bilm.plain import scalar_mix

N_LAYERS = 3
DIM = 5
# Of two sentences.
MASK = torch.tensor([[True, True, True, True], [True, True, False, False]])
# No subnormal numbers, which torch may flush to zero.
numbers = st.floats(-4, 4, allow_subnormal=False)


def random_layers(seed: int = 0) -> list[torch.Tensor]:
    """Layers with different means and variances, and with zeros for padding."""
    generator = torch.Generator().manual_seed(seed)
    layers = []
    for number in range(N_LAYERS):
        vectors = torch.randn(*MASK.shape, DIM, generator=generator) * (1 + number) + number
        layers.append(vectors * MASK.unsqueeze(-1))
    return layers


def with_weights(mix: LayerMix, weights: list[float], gamma: float) -> LayerMix:
    with torch.no_grad():
        mix.layer_weights.copy_(torch.tensor(weights))
        mix.gamma.fill_(gamma)
    return mix


class TestLayerMix:
    @given(st.lists(numbers, min_size=N_LAYERS, max_size=N_LAYERS), numbers, st.integers(0, 99))
    def test_it_is_equation_1(self, weights, gamma, seed):
        layers = random_layers(seed)
        mixed = with_weights(LayerMix(N_LAYERS), weights, gamma)(layers, MASK)
        expected = scalar_mix(torch.stack(layers), torch.tensor(weights), gamma)
        torch.testing.assert_close(mixed, expected, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("layer_norm", [None, "batch"])
    @pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0], [1.5, -0.5, 0.25]])
    def test_it_equals_allennlp_at_the_words(self, layer_norm, weights):
        scalar_mix = ScalarMix(
            N_LAYERS, do_layer_norm=layer_norm == "batch", initial_scalar_parameters=weights
        )
        scalar_mix.gamma.data.fill_(0.7)
        mix = with_weights(LayerMix(N_LAYERS, layer_norm=layer_norm), weights, 0.7)
        layers = random_layers(1)
        torch.testing.assert_close(mix(layers, MASK)[MASK], scalar_mix(layers, MASK)[MASK])

    @pytest.mark.parametrize("layer_norm", [None, "token", "batch"])
    @pytest.mark.parametrize("layers", ["mix", "top", 1])
    def test_padding_is_zero(self, layer_norm, layers):
        mixed = LayerMix(N_LAYERS, layers=layers, layer_norm=layer_norm)(random_layers(), MASK)
        assert mixed[~MASK].abs().max() == 0
        assert mixed[MASK].any(-1).all()

    @pytest.mark.parametrize("layer_norm", [None, "token", "batch"])
    def test_a_batch_without_words_is_zero(self, layer_norm):
        empty = [torch.zeros(2, 3, DIM) for _ in range(N_LAYERS)]
        no_words = torch.zeros(2, 3, dtype=torch.bool)
        mixed = LayerMix(N_LAYERS, layer_norm=layer_norm)(empty, no_words)
        assert torch.equal(mixed, torch.zeros(2, 3, DIM))

    def test_token_norm_gives_each_vector_mean_0_and_variance_1(self):
        mix = LayerMix(N_LAYERS, layers=2, layer_norm="token")
        mixed = mix(random_layers(), MASK)[MASK].detach().numpy()
        np.testing.assert_allclose(mixed.mean(-1), 0.0, atol=1e-5)
        np.testing.assert_allclose(mixed.var(-1), 1.0, rtol=1e-3)

    @pytest.mark.parametrize(
        ("layer_norm", "depends"), [(None, False), ("token", False), ("batch", True)]
    )
    def test_only_batch_norm_lets_a_word_depend_on_other_sentences(self, layer_norm, depends):
        mix = LayerMix(N_LAYERS, layer_norm=layer_norm)
        layers = random_layers()
        together = mix(layers, MASK)[:1]
        alone = mix([layer[:1] for layer in layers], MASK[:1])
        assert torch.allclose(together, alone, atol=1e-6) is not depends

    @pytest.mark.parametrize("layer_norm", [None, "token", "batch"])
    def test_gradients_reach_weights_and_gamma(self, layer_norm):
        """Compared with central differences in float64."""
        mix = LayerMix(N_LAYERS, layer_norm=layer_norm).double()
        with_weights(mix, [0.3, -0.2, 0.5], 1.3)
        layers = [layer.double() for layer in random_layers()]

        def mixed(weights: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
            parameters = {"layer_weights": weights, "gamma": gamma}
            return torch.func.functional_call(mix, parameters, (layers, MASK))

        torch.autograd.gradcheck(mixed, (mix.layer_weights, mix.gamma))
        mix(layers, MASK).square().sum().backward()
        assert mix.layer_weights.grad.abs().min() > 0
        assert mix.gamma.grad.abs() > 0

    @pytest.mark.parametrize(("layers", "number"), [("top", 2), (0, 0), (1, 1), (2, 2)])
    def test_a_single_layer_is_multiplied_by_gamma(self, layers, number):
        mix = LayerMix(N_LAYERS, layers=layers)
        assert [name for name, _ in mix.named_parameters()] == ["gamma"]
        mix.gamma.data.fill_(-2.0)
        all_layers = random_layers()
        assert torch.equal(mix(all_layers, MASK), -2.0 * all_layers[number])
