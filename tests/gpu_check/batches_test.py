import math
import os

import pytest
import torch

from elmo_tasks.bilm.lstm.fast_cell import PLAIN_PATH
from elmo_tasks.gpu_check.batches import largest_of, lowest_cosine, plain_path, ragged, relative_difference


class TestComparisons:
    def test_they_are_those_of_the_largest_number_and_of_the_worst_row(self):
        """Oracle: by hand; what is not a number stays so, and no numbers are equal."""
        theirs = torch.tensor([[4.0, 0.0], [0.0, 2.0]])
        ours = torch.tensor([[4.0, 0.0], [2.0, 2.0]])
        assert relative_difference(ours, theirs) == 0.5
        assert lowest_cosine(ours, theirs) == pytest.approx(math.sqrt(0.5))
        assert math.isnan(relative_difference(ours * math.nan, theirs))
        assert math.isnan(lowest_cosine(ours * math.nan, theirs))
        assert (relative_difference(ours[:0], theirs[:0]), lowest_cosine(ours[:0], theirs[:0])) == (0.0, 1.0)

    @pytest.mark.parametrize("differences", [[0.0, math.nan], [math.nan, 1.0], [1.0, math.nan, 2.0]])
    def test_what_is_not_a_number_is_the_largest(self, differences):
        """Oracle: by hand; `max` of the first is 0."""
        assert math.isnan(largest_of(differences))
        assert largest_of([0.5, 2.0, 1.0]) == 2.0

    @pytest.mark.parametrize("compare", [relative_difference, lowest_cosine])
    def test_other_shapes_are_an_error(self, compare):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=r"the shapes are \(2,\) and \(3,\)"):
            compare(torch.ones(2), torch.ones(3))


class TestRagged:
    @pytest.mark.parametrize(("n_sentences", "longest"), [(1, 5), (2, 5), (9, 3)])
    def test_it_has_the_shape_that_was_asked_for(self, n_sentences, longest):
        """Oracle: by hand; the same for the same seed, and another for another one."""
        batch = ragged(n_sentences, longest)
        assert len(batch) == n_sentences and batch[0] == []
        assert max(map(len, batch)) == (longest if n_sentences > 1 else 0)
        assert ragged(9, 30, 1) == ragged(9, 30, 1) != ragged(9, 30, 2)


class TestPlainPath:
    @pytest.mark.parametrize("before", [None, "1"])
    def test_the_variable_is_as_before_after_an_error(self, monkeypatch, before):
        """Oracle: the environment."""
        monkeypatch.delenv(PLAIN_PATH, raising=False)
        if before is not None:
            monkeypatch.setenv(PLAIN_PATH, before)
        with pytest.raises(ZeroDivisionError), plain_path():
            assert os.environ[PLAIN_PATH] == "0"
            raise ZeroDivisionError
        assert os.environ.get(PLAIN_PATH) == before
