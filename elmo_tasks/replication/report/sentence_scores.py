"""Scores of single test sentences, and a test of two models over them."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["permutation_p_value", "score_of", "sentences_from_text", "text_of_sentences"]

# Of one sentence: a score from 0 to 1; or the right, the predicted and the gold spans, for an F1 of all together.
_N_COLUMNS = (1, 3)
# The score of a whole run, which was evaluated in other batches, may differ by this, in percent.
_TOLERANCE = 0.1
_PERMUTATIONS_AT_ONCE = 500


def text_of_sentences(rows: Iterable[Sequence[float]]) -> str:
    """
    # Parameters

    rows
        For each sentence its score, from 0 to 1, or the number of its right, predicted and gold spans.

    # Returns

    `str`
        All of them in short, as `1;0;0.6667` or `2,3,2;0,0,1`.
    """
    return ";".join(",".join(f"{value:.4g}" for value in row) for row in rows)


def sentences_from_text(text: Any, score: float) -> np.ndarray:
    """
    # Parameters

    text
        From `text_of_sentences`.
    score
        That of the run, in percent.

    # Returns

    `np.ndarray`
        Shape `(n_sentences, 1)` or `(n_sentences, 3)`, float64.

    # Raises

    `ValueError`
        If it is not such a text, or they do not give the score of the run.
    """
    if not isinstance(text, str):
        raise ValueError(f"'sentences' must be a string, but is {text!r:.50}")
    rows = [[float(value) for value in row.split(",")] for row in text.split(";")]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) not in _N_COLUMNS:
        raise ValueError("'sentences' must have one number for each sentence, or three for each, but have others")
    # Shape: (n_sentences, n_columns)
    found = np.array(rows)
    if not np.isfinite(found).all() or (found < 0).any():
        raise ValueError("'sentences' must be numbers of at least 0, but one is not")
    if not math.isclose(total := float(score_of(found.sum(0), len(found))), score, abs_tol=_TOLERANCE):
        raise ValueError(f"'sentences' must give the score of the run, {score:.2f}, but give {total:.2f}")
    return found


def score_of(sums: np.ndarray, n_sentences: int) -> np.ndarray:
    """
    # Parameters

    sums
        Over sentences, shape `(..., n_columns)`.
    n_sentences
        How many there are.

    # Returns

    `np.ndarray`
        Percent, shape `(...)`.
    """
    if sums.shape[-1] == 1:
        return 100 * sums[..., 0] / n_sentences
    return 200 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1)


def permutation_p_value(first: np.ndarray, second: np.ndarray, n_permutations: int = 10_000) -> float:
    """
    That of a paired permutation test (approximate randomization), two-sided: if the models do not differ, each sentence
    may as well have had the output of the other model. SciPy's `permutation_test` has no scores that are not means,
    such as F1, but with arrays of all permutations.

    # Parameters

    first, second
        Of two models, on the same sentences: shape `(n_sentences, n_columns)`.
    n_permutations
        How many are drawn; the same for every call.

    # Returns

    `float`
        At least 1 / (n_permutations + 1).

    # Raises

    `ValueError`
        If the two have other sentences.
    """
    if first.shape != second.shape:
        raise ValueError(
            f"two models must be compared on the same sentences, but have {len(first):,} and {len(second):,} of them"
        )
    n_sentences, generator = len(first), np.random.default_rng(0)
    # Shape of each: (n_columns,)
    sum_of_first, sum_of_second = first.sum(0), second.sum(0)
    observed = abs(score_of(sum_of_second, n_sentences) - score_of(sum_of_first, n_sentences))
    n_as_large = 0
    for start in range(0, n_permutations, _PERMUTATIONS_AT_ONCE):
        n = min(_PERMUTATIONS_AT_ONCE, n_permutations - start)
        # Which sentences are exchanged. Shape: (n, n_sentences)
        exchanged = np.unpackbits(generator.integers(0, 256, (n, -(-n_sentences // 8)), np.uint8), axis=1)
        # Shape: (n, n_columns)
        moved = exchanged[:, :n_sentences].astype(np.float32) @ (second - first).astype(np.float32)
        differences = score_of(sum_of_second - moved, n_sentences) - score_of(sum_of_first + moved, n_sentences)
        # As large up to the rounding of sums.
        n_as_large += int((np.abs(differences) >= observed - 1e-4).sum())
    return (n_as_large + 1) / (n_permutations + 1)
