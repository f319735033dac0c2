"""Tests of scores of single sentences and of the permutation test over them."""

import numpy as np
import pytest
from scipy.stats import binomtest

from elmo_tasks.replication import FinishedRun, Results
from elmo_tasks.replication.report.sentence_scores import permutation_p_value, sentences_from_text, text_of_sentences


class TestText:
    def test_it_is_read_as_it_was_written(self):
        """Oracle: the numbers, to four digits; the scores by hand: 2 of 3, and F1 of 2 right of 3 and 4 spans."""
        assert text_of_sentences([[1.0], [0.0], [1.0]]) == "1;0;1"
        assert sentences_from_text("1;0;1", 66.67).tolist() == [[1], [0], [1]]
        text = text_of_sentences([(2, 3, 2), (0, 0, 2)])
        assert text == "2,3,2;0,0,2"
        assert sentences_from_text(text, 57.14).tolist() == [[2, 3, 2], [0, 0, 2]]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (None, "must be a string"),
            ("", "could not convert"),
            ("1;1,2,3", "one number for each sentence, or three"),
            ("1,2;3,4", "one number for each sentence, or three"),
            ("1;nan", "numbers of at least 0"),
            ("1;-1", "numbers of at least 0"),
            ("1;1;0", r"must give the score of the run, 50\.00, but give 66\.67"),
        ],
    )
    def test_another_text_is_refused(self, text, message):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=message):
            sentences_from_text(text, 50.0)


class TestPermutationPValue:
    def test_of_right_and_wrong_it_is_that_of_the_sign_test(self):
        """Oracle: SciPy's exact binomial test of the sentences that one model alone has right: McNemar's."""
        first = np.array([[1.0]] * 4 + [[0.0]] * 12 + [[1.0]] * 50)
        second = np.array([[0.0]] * 4 + [[1.0]] * 12 + [[1.0]] * 50)
        exact = binomtest(4, 16).pvalue
        assert permutation_p_value(first, second) == pytest.approx(exact, abs=0.01)
        assert permutation_p_value(second, first) == permutation_p_value(first, second)

    def test_of_spans_it_is_that_of_all_permutations(self):
        """Oracle: F1 by hand for each of the 256 permutations of eight sentences."""
        generator = np.random.default_rng(1)
        first, second = (np.sort(generator.integers(0, 5, (8, 3)), axis=1) for _ in range(2))

        def difference(exchanged: np.ndarray) -> float:
            a, b = np.where(exchanged, second, first), np.where(exchanged, first, second)
            f1 = [2 * rows[:, 0].sum() / rows[:, 1:].sum() for rows in (a, b)]
            return abs(f1[1] - f1[0])

        masks = [np.array([number >> bit & 1 for bit in range(8)])[:, None] for number in range(256)]
        differences = np.array([difference(mask) for mask in masks])
        exact = (differences >= differences[0] - 1e-9).mean()
        assert 0.01 < exact < 0.99
        assert permutation_p_value(first, second) == pytest.approx(exact, abs=0.02)

    def test_equal_models_do_not_differ_and_other_sentences_are_refused(self):
        """Oracle: every permutation has the same difference; the message."""
        rows = np.ones((7, 1))
        assert permutation_p_value(rows, rows) == 1.0
        with pytest.raises(ValueError, match="7 and 6 of them"):
            permutation_p_value(rows, rows[:6])


def run(task: str, variant: str, seed: int, rows: list[int] | None) -> FinishedRun:
    sentences = None if rows is None else np.array(rows, float)[:, None]
    return FinishedRun(task, variant, seed, None, dev=50.0, test=50.0, sentences=sentences)


class TestNotes:
    def test_table_1_says_of_each_task_whether_the_models_differ(self):
        """Oracle: by hand: 20 sentences of 20 that ELMo alone has right; no sentence without a pair of one seed."""
        runs = [run("snli", "baseline", 1, [0] * 20), run("snli", "both", 1, [1] * 20)]
        runs += [run("sst", "baseline", 1, [0]), run("sst", "both", 2, [1]), run("ner", "input", 1, None)]
        (note,) = Results.of_runs("table 1", runs).notes
        assert "permutation test, two-sided: SNLI p < 0.001 (20, seed 1)." in note
        assert Results.of_runs("table 1", runs[2:]).notes == []
        assert Results.of_runs("table 2", runs[:2]).notes == []
