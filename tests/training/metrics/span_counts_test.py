import pytest
import torch

from elmo_tasks.tags import tags_to_spans
from elmo_tasks.training.metrics.span_counts import count_spans, pairs_of_spans, precision_recall_f1


class TestPairsOfSpans:
    def test_each_sentence_has_its_predicted_and_its_gold_spans(self):
        """Oracle: by hand."""
        pairs = pairs_of_spans([["U-PER", "O"], []], [["B-PER", "L-PER"], []], tags_to_spans)
        assert list(pairs) == [({("PER", 0, 0)}, {("PER", 0, 1)}), (set(), set())]

    def test_other_lengths_are_an_error(self):
        """Oracle: the message says both; for the lists themselves, Python's own error."""
        with pytest.raises(ValueError, match="as many predicted as gold tags, but has 1 and 2"):
            list(pairs_of_spans([["O"]], [["O", "O"]], tags_to_spans))
        with pytest.raises(ValueError, match="argument 2 is longer"):
            list(pairs_of_spans([], [["O"]], tags_to_spans))


class TestCountSpans:
    def test_right_predicted_and_gold_spans_are_added(self):
        """Oracle: by hand."""
        counts = torch.ones(2, 3, dtype=torch.long)
        count_spans(counts, {"A": 0, "B": 1}, {("A", 0), ("B", 1), ("B", 2)}, {("A", 0), ("A", 3), ("B", 2)})
        assert counts.tolist() == [[1 + 1, 1 + 1, 1 + 2], [1 + 1, 1 + 2, 1 + 1]]


class TestPrecisionRecallF1:
    @pytest.mark.parametrize(
        ("counts", "scores"),
        [([1, 2, 4], (0.5, 0.25, 1 / 3)), ([0, 0, 0], (0, 0, 0)), ([0, 0, 3], (0, 0, 0)), ([0, 3, 0], (0, 0, 0))],
    )
    def test_they_are_the_formulas(self, counts, scores):
        """Oracle: by hand; 0 where there is nothing to divide by."""
        assert precision_recall_f1(torch.tensor(counts)) == pytest.approx(scores)
