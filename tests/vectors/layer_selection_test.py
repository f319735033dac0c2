"""Tests of the selection of layers."""

import numpy as np
import pytest
import torch

from elmo_tasks.bilm import Bilm
from elmo_tasks.vectors.layer_selection import LayerSelection
from elmo_tasks.vectors.pooling import POOLS, pooled

SENTENCES = [["The", "cat", "sat"], [], ["Yes"]]


@pytest.fixture(scope="module")
def output(bilm: Bilm):
    return bilm(SENTENCES)


class TestLayerSelection:
    @pytest.mark.parametrize("weights", [None, [0.3, -1.0, 2.0], np.array([5.0, 5.0, 5.0]), (1, 2, 3)])
    @pytest.mark.parametrize("gamma", [1.0, -0.5])
    def test_the_mix_is_equation_1(self, output, weights, gamma):
        """Oracle: the formula in NumPy."""
        shares = np.exp(np.zeros(3) if weights is None else np.asarray(weights, dtype=float))
        expected = gamma * np.tensordot(shares / shares.sum(), np.stack(output.layers), 1)
        found = LayerSelection(n_layers=3, weights=weights, gamma=gamma)(output)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)

    def test_weights_and_gamma_may_be_those_of_a_trained_mix(self, output):
        """Oracle: the same numbers in Python; no gradient."""
        weights, gamma = torch.tensor([0.5, 1.0, -1.0], requires_grad=True), torch.tensor(2.0, requires_grad=True)
        found = LayerSelection(n_layers=3, weights=weights, gamma=gamma)(output)
        assert not found.requires_grad
        expected = LayerSelection(n_layers=3, weights=[0.5, 1.0, -1.0], gamma=2.0)(output)
        torch.testing.assert_close(found, expected)
        of_allennlp = torch.nn.ParameterList([torch.nn.Parameter(weight[None]) for weight in weights.detach()])
        for given in (of_allennlp, list(of_allennlp), weights.bfloat16()):
            found = LayerSelection(n_layers=3, weights=given, gamma=gamma.detach()[None])(output)
            torch.testing.assert_close(found, expected)

    def test_large_weights_choose_a_layer(self, output):
        """Oracle: the layer; the exponential of its weight is infinite."""
        found = LayerSelection(n_layers=3, weights=[0.0, 5000.0, 0.0])(output)
        assert torch.equal(found, output.layers[1])

    @pytest.mark.parametrize(("layers", "index"), [("top", 2), (0, 0), (1, 1), (2, 2), (np.int64(1), 1)])
    def test_a_layer_is_that_of_the_bilm(self, output, layers, index):
        """Oracle: the layer, bit for bit."""
        assert torch.equal(LayerSelection(n_layers=3, layers=layers)(output), output.layers[index])
        assert torch.equal(LayerSelection(n_layers=3, layers=layers, gamma=2.0)(output), 2.0 * output.layers[index])

    def test_all_layers_come_sentence_by_sentence(self, output):
        """Oracle: the layers."""
        found = LayerSelection(n_layers=3, layers="all")(output)
        assert found.shape == (3, 3, 3, 12)
        for index, layer in enumerate(output.layers):
            assert torch.equal(found[:, index], layer)

    @pytest.mark.parametrize("pool", POOLS)
    @pytest.mark.parametrize("layers", ["mix", "all", 0])
    def test_gamma_is_of_the_vectors_that_are_pooled(self, output, layers, pool):
        """Oracle: the vectors of the words with that gamma, pooled; a negative one changes which is the largest."""
        words = LayerSelection(n_layers=3, layers=layers, gamma=-1.5)(output)
        mask = output.mask if layers != "all" else output.mask[:, None]
        found = LayerSelection(n_layers=3, layers=layers, pool=pool, gamma=-1.5)(output)
        torch.testing.assert_close(found, pooled(words, mask, pool))

    @pytest.mark.parametrize("pool", POOLS)
    def test_pools_are_those_of_the_vectors(self, output, pool):
        """Oracle: `pooled`, layer by layer."""
        found = LayerSelection(n_layers=3, layers="all", pool=pool, gamma=2.0)(output)
        for index, layer in enumerate(output.layers):
            torch.testing.assert_close(found[:, index], 2.0 * pooled(layer, output.mask, pool))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"layers": "best"}, r"layers must be 'mix', 'all', 'top' or a number from 0 .*to 2, but is 'best'"),
            ({"layers": 3}, "but is 3"),
            ({"layers": -1}, "but is -1"),
            ({"layers": True}, "but is True"),
            ({"layers": 1.0}, r"but is 1\.0"),
            ({"layers": None}, "but is None"),
            ({"pool": "sum"}, "pool must be one of 'mean', 'max', 'first-last', or None, but is 'sum'"),
            ({"gamma": float("nan")}, "gamma must be a finite number, but is nan"),
            ({"gamma": "large"}, "gamma must be a finite number, but is 'large'"),
            ({"weights": [0.0, 1.0]}, r"weights must be 3 finite numbers.* but are \[0\.0, 1\.0\]"),
            ({"weights": [0.0, 1.0, float("inf")]}, "weights must be 3 finite numbers"),
            ({"gamma": "2"}, "gamma must be a finite number, but is '2'"),
            ({"weights": "abc"}, "weights must be 3 finite numbers.* but are 'abc'"),
            ({"weights": ["0", "1", "2"]}, "weights must be 3 finite numbers"),
            ({"layers": np.array([0, 1])}, r"but is array\(\[0, 1\]\)"),
            ({"weights": [0.0] * 3, "layers": "top"}, "weights are for layers='mix', but layers is 'top'"),
        ],
    )
    def test_other_values_are_errors(self, arguments, message):
        """Oracle: the rule and the value in the message."""
        with pytest.raises(ValueError, match=message):
            LayerSelection(n_layers=3, **arguments)
