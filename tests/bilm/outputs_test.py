"""Tests of the outputs of a biLM."""

import torch

from tests.bilm.helpers import SMALL

BATCH = [["The", "cat", "sat"], [], ["The", "dog"]]
DIM = SMALL.projection_dim


class TestBilmOutput:
    def test_layers_and_mask_have_the_shapes_that_are_promised(self, bilm):
        """Oracle: the numbers of layers, sentences, words and units by hand."""
        output = bilm(BATCH)
        assert [tuple(layer.shape) for layer in output.layers] == [(3, 3, 2 * DIM)] * (SMALL.n_layers + 1)
        assert output.mask.tolist() == [[True, True, True], [False, False, False], [True, True, False]]

    def test_the_first_layer_has_the_vector_of_the_word_twice(self, bilm):
        """Oracle: its halves; a word in another sentence and place; what is above depends on the sentence."""
        first, *above = bilm([*BATCH, ["no", "cat"]]).layers
        assert torch.equal(first[..., :DIM], first[..., DIM:])
        torch.testing.assert_close(first[0, 1], first[3, 1], rtol=0, atol=1e-6)
        assert first[0, 1].abs().max() > 1e-3
        assert all((layer[0, 1] - layer[3, 1]).abs().max() > 1e-3 for layer in above)

    def test_the_forward_units_come_first(self, bilm):
        """Oracle: two sentences that begin alike: only what looks ahead differs at their first word."""
        top = bilm(BATCH).layers[-1][[0, 2], 0]
        torch.testing.assert_close(top[0, :DIM], top[1, :DIM], rtol=0, atol=1e-6)
        assert (top[0, DIM:] - top[1, DIM:]).abs().max() > 1e-3

    def test_there_is_nothing_where_there_is_no_word(self, bilm):
        """Oracle: zeros."""
        output = bilm(BATCH)
        for layer in output.layers:
            assert layer[~output.mask].abs().sum() == 0


class TestBilmContexts:
    def test_places_are_counted_as_is_promised(self, bilm):
        """Oracle: by hand: five words and three ends; the begin is number 5 and the end number 6."""
        contexts = bilm.contexts(BATCH)
        assert contexts.hidden.shape == (2, 8, DIM)
        assert contexts.targets.shape == (2, 8) and contexts.rows.shape == (8,)
        for targets, boundary in zip(contexts.targets.tolist(), (6, 5), strict=True):
            expected = [(0, 0), (0, 1), (0, 2), (0, boundary), (1, boundary), (2, 3), (2, 4), (2, boundary)]
            assert sorted(zip(contexts.rows.tolist(), targets, strict=True)) == expected
