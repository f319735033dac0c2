import pytest

from elmo_tasks.analysis import WsdScore

GOLD = {"a": ("x%1", "y%1"), "b": ("z%1",), "c": ("w%1",), "d": ("v%1",)}


def score(answers: dict[str, list[str]]) -> list[float]:
    found = WsdScore.of(GOLD, answers)
    assert found.instances == 4
    return [found.precision, found.recall, found.coverage, found.f1]


class TestWsdScore:
    """The oracle is the arithmetic of the framework's `Scorer.java`, by hand."""

    def test_one_of_several_right_senses_is_enough(self):
        """Oracle: all four right, whichever of the two right senses `a` gets."""
        for sense in GOLD["a"]:
            assert score({"a": [sense], "b": ["z%1"], "c": ["w%1"], "d": ["v%1"]}) == [1.0, 1.0, 1.0, 1.0]

    def test_an_instance_without_an_answer_costs_recall_only(self):
        """Oracle: 2 of 3 answers are right: P 2/3, R 2/4, F1 2PR/(P+R) = 4/7; an empty answer does not count."""
        expected = pytest.approx([2 / 3, 2 / 4, 3 / 4, 4 / 7])
        assert score({"a": ["x%1"], "b": ["z%1"], "c": ["wrong%1"]}) == expected
        assert score({"a": ["x%1"], "b": ["z%1"], "c": ["wrong%1"], "d": []}) == expected

    def test_several_answers_share_a_point(self):
        """Oracle: `a` gets 2 of 3 (x and y are right, wrong is not), `b` 1/2: 7/6 of 2 answered, of 4."""
        precision, recall = 7 / 12, 7 / 24
        expected = [precision, recall, 0.5, 2 * precision * recall / (precision + recall)]
        assert score({"a": ["x%1", "y%1", "wrong%1"], "b": ["z%1", "wrong%1"]}) == pytest.approx(expected)

    def test_the_same_answer_twice_counts_once(self):
        """Oracle: the scorer keeps answers in a set."""
        assert score({"b": ["z%1", "z%1", "wrong%1"]})[0] == 0.5

    def test_answers_to_other_instances_do_not_count(self):
        """Oracle: P 1/1, R 1/4."""
        assert score({"a": ["x%1"], "elsewhere": ["wrong%1"]})[:3] == [1.0, 0.25, 0.25]

    def test_nothing_right_is_zero(self):
        """Oracle: no division by zero, neither without right answers nor without answers."""
        assert score({"a": ["wrong%1"]}) == [0.0, 0.0, 0.25, 0.0]
        assert score({}) == [0.0, 0.0, 0.0, 0.0]

    def test_nothing_to_score_is_an_error(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="at least one instance"):
            WsdScore.of({}, {"a": ["x%1"]})
