"""Tests of a smaller biLM with weights of a larger one."""

from dataclasses import replace

import pytest
import torch

from elmo_tasks.bilm import Bilm
from elmo_tasks.distillation.pruning import copy_largest
from tests.bilm.helpers import random_bilm

SENTENCES = [["the", "cat", "sat", "."], ["a", "dog"]]


def smaller(bilm: Bilm, **changes) -> Bilm:
    torch.manual_seed(1)
    return Bilm(replace(bilm.options, **changes)).eval()


def layers(bilm: Bilm) -> torch.Tensor:
    with torch.no_grad():
        return torch.stack(bilm(SENTENCES).layers)


@pytest.fixture
def large() -> Bilm:
    return random_bilm().eval()


class TestCopyLargest:
    def test_a_bilm_of_the_same_size_is_a_copy(self, large):
        """Oracle: all weights of the larger one."""
        small = smaller(large)
        copy_largest(small, large)
        expected = large.state_dict()
        assert all(torch.equal(weight, expected[name]) for name, weight in small.state_dict().items())

    def test_units_without_a_weight_in_the_projection_are_left_out(self, large):
        """Oracle: the layers of the larger biLM, where what is left out does nothing; without the scale."""
        options = large.options
        n_cells = options.cell_dim // 2
        filters = tuple((width, max(1, number // 2)) for width, number in options.filters)
        encoder = large.character_encoder
        generator = torch.Generator().manual_seed(2)
        idle, start = [], 0
        for (_, many), (_, few) in zip(options.filters, filters, strict=True):
            idle.append(start + torch.randperm(many, generator=generator)[few:])
            start += many
        units = torch.cat(idle)
        with torch.no_grad():
            encoder.projection.weight[:, units] = 0
            for highway in encoder.highways:
                for layer in (highway.transform, highway.carry):
                    layer.weight[:, units] = 0
            for lstm in (*large.forward_layers, *large.backward_layers):
                lstm.projection[torch.randperm(options.cell_dim, generator=generator)[n_cells:]] = 0
        small = smaller(large, cell_dim=n_cells, filters=filters)
        copy_largest(small, large)
        with torch.no_grad():
            for lstm in (*small.forward_layers, *small.backward_layers):
                lstm.projection *= options.cell_dim / n_cells
        torch.testing.assert_close(layers(small), layers(large), rtol=0, atol=1e-6)

    def test_cells_of_the_largest_weights_are_kept(self, large):
        """Oracle: one cell, by NumPy."""
        small = smaller(large, cell_dim=1)
        copy_largest(small, large)
        for few, many in zip(small.backward_layers, large.backward_layers, strict=True):
            weights = many.projection.detach().numpy()
            cell = (weights**2).sum(1).argmax()
            n_cells = len(weights)
            assert few.projection.detach().numpy() == pytest.approx(weights[[cell]] / n_cells)
            assert few.kernel.detach().numpy() == pytest.approx(many.kernel.detach().numpy()[:, cell::n_cells])
            assert few.bias.detach().numpy() == pytest.approx(many.bias.detach().numpy()[cell::n_cells])


class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"projection_dim": 3}, r"lstm\.projection_dim must be \d+, as in the larger biLM, but is 3"),
            ({"n_layers": 3}, r"lstm\.n_layers must be 2, as in the larger biLM, but is 3"),
            ({"residual": False}, r"lstm\.use_skip_connections must be True, .* but is False"),
            ({"character_dim": 99}, r"char_cnn\.embedding\.dim must be \d+, .* but is 99"),
            ({"n_highway": 3}, r"char_cnn\.n_highway must be \d+, .* but is 3"),
            ({"activation": "tanh"}, r"char_cnn\.activation must be relu, .* but is tanh"),
            ({"filters": ((1, 1), (5, 1))}, r"the widths in char_cnn\.filters must be \[.*\], .* but is \[1, 5\]"),
            ({"cell_dim": 999}, r"lstm\.dim must be at most \d+, as in the larger biLM, but is 999"),
        ],
    )
    def test_a_bilm_of_another_shape_is_an_error(self, large, changes, message):
        """Oracle: the message, with the names of `options.json`; nothing is copied."""
        small = smaller(large, **changes)
        before = {name: weight.clone() for name, weight in small.state_dict().items()}
        with pytest.raises(ValueError, match=message):
            copy_largest(small, large)
        assert all(torch.equal(weight, before[name]) for name, weight in small.state_dict().items())

    def test_more_filters_are_an_error(self, large):
        """Oracle: the message names their width."""
        (width, number), *rest = large.options.filters
        small = smaller(large, filters=((width, number + 1), *rest))
        message = rf"the filters of width {width} in char_cnn\.filters must be at most {number}, .* is {number + 1}"
        with pytest.raises(ValueError, match=message):
            copy_largest(small, large)
