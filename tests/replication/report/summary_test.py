"""Tests of means, deviations and differences."""

import math

import pytest
from scipy import stats

from elmo_tasks.replication import Summary
from elmo_tasks.replication.report.summary import paired_p_value

BASELINE, ELMO = [29.1, 27.4, 30.8], [38.0, 36.4, 39.6, 37.2]


class TestSummary:
    def test_mean_and_deviation(self):
        """Oracle: by hand; the squares are 4, 0 and 4, and divided by two."""
        summary = Summary.of([1.0, 3.0, 5.0])
        assert (summary.mean, summary.sd, summary.n) == (3.0, 2.0, 3)
        assert str(summary) == "3.00 ± 2.00 (3)"

    def test_one_seed_has_no_deviation(self):
        """Oracle: by hand."""
        assert str(Summary.of([40.0])) == "40.00 (1)"

    def test_increases(self):
        """Oracle: the paper's NER: 90.15 and 92.22, which it calls 21%."""
        baseline, elmo = Summary(90.15, None, 1), Summary(92.22, 0.1, 5)
        assert baseline.absolute_increase(elmo) == pytest.approx(2.07)
        assert baseline.relative_increase(elmo) == pytest.approx(21.0, abs=0.05)
        assert Summary(100.0, None, 1).relative_increase(elmo) is None

    def test_p_is_that_of_welch(self):
        """Oracle: scipy on the values themselves, and Welch's formula for t and its degrees of freedom."""
        first, second = Summary.of(BASELINE), Summary.of(ELMO)
        p = first.p_value(second)
        assert p == pytest.approx(stats.ttest_ind(BASELINE, ELMO, equal_var=False).pvalue)
        a, b = first.sd**2 / 3, second.sd**2 / 4
        t = (second.mean - first.mean) / math.sqrt(a + b)
        df = (a + b) ** 2 / (a**2 / 2 + b**2 / 3)
        assert p == pytest.approx(2 * stats.t.sf(t, df))

    def test_without_any_variance_there_is_no_p(self):
        """Oracle: a division by zero."""
        assert Summary.of([1.0, 1.0]).p_value(Summary.of([2.0, 2.0])) is None
        assert Summary.of([1.0]).p_value(Summary.of([2.0, 3.0])) is None


class TestPairedPValue:
    def test_it_is_that_of_the_differences(self):
        """Oracle: by hand: differences 1, 2 and 3 have t = 2 / (1 / sqrt(3)) with two degrees of freedom."""
        t = 2 * 3**0.5
        # The distribution of Student for two degrees of freedom, in closed form.
        assert paired_p_value([(1.0, 2.0), (9.0, 11.0), (4.0, 7.0)]) == pytest.approx(1 - t / (2 + t * t) ** 0.5)

    def test_without_a_difference_of_differences_there_is_no_p(self):
        """Oracle: a division by zero."""
        assert paired_p_value([]) is paired_p_value([(1.0, 2.0)]) is paired_p_value([(1.0, 2.0), (2.0, 3.0)]) is None
        assert paired_p_value([(0.1, 0.3), (0.2, 0.4), (0.5, 0.7)]) is None, "equal but for their rounding"
