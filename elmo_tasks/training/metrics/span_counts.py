"""Counts of right, predicted and gold spans, for the F1 of entities and that of arguments."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

__all__ = ["count_spans", "pairs_of_spans", "precision_recall_f1"]

# The spans of a sentence, each with its label first.
Spans = set[tuple[Any, ...]]


def pairs_of_spans(
    predicted: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    spans_of: Callable[[Sequence[str]], Iterable[Any]],
) -> Iterator[tuple[Spans, Spans]]:
    """
    The predicted and the gold spans of each sentence.

    # Parameters

    predicted, gold : `Sequence[Sequence[str]]`
        Tags of the same sentences.
    spans_of : `Callable`
        From the tags of a sentence to its spans.

    # Raises

    `ValueError`
        If the two differ in length.
    """
    for predicted_tags, gold_tags in zip(predicted, gold, strict=True):
        if len(predicted_tags) != len(gold_tags):
            raise ValueError(
                f"a sentence must have as many predicted as gold tags, but has {len(predicted_tags)} "
                f"and {len(gold_tags)}"
            )
        yield set(spans_of(predicted_tags)), set(spans_of(gold_tags))


def count_spans(counts: torch.Tensor, rows: dict[str, int], predicted: Spans, gold: Spans) -> None:
    """
    # Parameters

    counts : `torch.LongTensor`
        Shape `(n_rows, 3)`: the right, the predicted and the gold spans are added to its columns.
    rows : `Dict[str, int]`
        The row of each label.
    predicted, gold : `Set[Tuple]`
        Of a sentence, from `pairs_of_spans`.
    """
    for column, spans in enumerate((predicted & gold, predicted, gold)):
        for label, *_ in spans:
            counts[rows[label], column] += 1


def precision_recall_f1(counts: torch.Tensor) -> tuple[float, float, float]:
    """From the number of right, predicted and gold spans, of shape `(3,)`; 0 where the denominator is 0."""
    right, predicted, gold = counts.tolist()
    return (
        right / predicted if predicted else 0.0,
        right / gold if gold else 0.0,
        2 * right / (predicted + gold) if predicted + gold else 0.0,
    )
