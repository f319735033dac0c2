"""Mean and standard deviation of some seeds, and whether two of them differ."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Summary", "paired_p_value"]

# Percent: differences of scores that are equal differ by their rounding.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Summary:
    """
    # Parameters

    mean
        In percent.
    sd
        The standard deviation of the population that the seeds are drawn from (divided by n - 1); `None` for one seed.
    n
        How many seeds.
    """

    mean: float
    sd: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Summary":
        """Of one value or more."""
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))

    def __str__(self) -> str:
        sd = "" if self.sd is None else f" ± {self.sd:.2f}"
        return f"{self.mean:.2f}{sd} ({self.n})"

    def absolute_increase(self, other: "Summary") -> float:
        """How far the other's mean is above ours."""
        return other.mean - self.mean

    def relative_increase(self, other: "Summary") -> float | None:
        """The part of our errors that the other avoids, in percent, as in the paper; `None` if we make no errors."""
        return None if self.mean >= 100 else 100 * (other.mean - self.mean) / (100 - self.mean)

    def p_value(self, other: "Summary") -> float | None:
        """
        That of Welch's t-test, two-sided: the variances of two models need not be equal. It takes no seeds for pairs,
        since the same seed gives two models other random numbers; see `paired_p_value`.

        # Returns

        `Optional[float]`
            `None` if one of the two has a single seed, or neither has any variance.
        """
        if self.sd is None or other.sd is None or self.sd == other.sd == 0:
            return None
        # At use: it takes a second to import.
        from scipy import stats

        p = float(
            stats.ttest_ind_from_stats(
                *(self.mean, self.sd, self.n), *(other.mean, other.sd, other.n), equal_var=False
            ).pvalue
        )
        return None if math.isnan(p) else p


def paired_p_value(pairs: Sequence[tuple[float, float]]) -> float | None:
    """
    That of the paired t-test, two-sided, which takes two runs with the same seed for a pair.

    # Parameters

    pairs
        The scores of two models, of each seed that both have.

    # Returns

    `Optional[float]`
        `None` if there are fewer than two pairs, or all have the same difference.
    """
    differences = [second - first for first, second in pairs]
    if not differences or max(differences) - min(differences) < _EQUAL:
        return None
    # At use: it takes a second to import.
    from scipy import stats

    firsts, seconds = zip(*pairs, strict=True)
    return float(stats.ttest_rel(seconds, firsts).pvalue)
