"""What the F1 of entities and that of arguments share: counts of right, predicted and gold spans."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

__all__ = ["count_spans", "pairs_of_spans", "precision_recall_f1"]

# Those of a sentence, each with its label first.
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
        If the two are not of the same length.
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
        Shape `(n_rows, 3)`: to its columns the right, the predicted and the gold spans are added.
    rows : `Dict[str, int]`
        The row of each label.
    predicted, gold : `Set[Tuple]`
        Of a sentence, as `pairs_of_spans` gives them.
    """
    for column, spans in enumerate((predicted & gold, predicted, gold)):
        for label, *_ in spans:
            counts[rows[label], column] += 1


def precision_recall_f1(counts: torch.Tensor) -> tuple[float, float, float]:
    """Of the number of right, predicted and gold spans, of shape `(3,)`; 0 where there is nothing to divide by."""
    right, predicted, gold = counts.tolist()
    return (
        right / predicted if predicted else 0.0,
        right / gold if gold else 0.0,
        2 * right / (predicted + gold) if predicted + gold else 0.0,
    )
