"""The score of CoNLL's shared tasks on named entities."""

from collections.abc import Iterable, Sequence

import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

from elmo_tasks.tags import tags_to_spans
from elmo_tasks.training.metrics.span_counts import count_spans, pairs_of_spans, precision_recall_f1

__all__ = ["SpanF1"]


@Metric.register("elmo_span_f1")
class SpanF1(Metric):
    """
    Precision, recall and F1 of whole entities (type, first and last word all right), as CoNLL's `conlleval` counts.

    Registered as a `Metric` with name "elmo_span_f1". AllenNLP's `SpanBasedF1Measure` refuses distributed training and
    tag sequences that are not well-formed, and merges types that begin with `C-`, which is for semantic roles.

    # Parameters

    labels : `Iterable[str]`
        The types of entities, `PER` and the like.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._rows = {label: row for row, label in enumerate(sorted(set(labels)))}
        self.reset()

    def reset(self) -> None:
        # Right, predicted and gold entities of each type. Shape: (n_labels, 3)
        self._counts = torch.zeros(len(self._rows), 3, dtype=torch.long)

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """
        # Parameters

        predicted, gold : `Sequence[Sequence[str]]`
            Tags of the same sentences, in any scheme that `tags_to_spans` reads.

        # Raises

        `ValueError`
            If the two differ in length.
        """
        counts = torch.zeros_like(self._counts)
        for found, wanted in pairs_of_spans(predicted, gold, tags_to_spans):
            count_spans(counts, self._rows, found, wanted)
        # In distributed training each worker counts a part of the batch, and all report the sum.
        self._counts += dist_reduce_sum(counts).cpu()

    def counts(self) -> tuple[int, int, int]:
        """How many entities were right, predicted and gold since the last reset."""
        right, predicted, gold = self._counts.sum(0).tolist()
        return right, predicted, gold

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `precision`, `recall` and `f1-measure`, each followed by `-overall` and by each type; 0 where the
            denominator is 0.
        """
        rows = {"overall": self._counts.sum(0), **{label: self._counts[row] for label, row in self._rows.items()}}
        metrics: dict[str, float] = {}
        for name, counts in rows.items():
            scores = zip(("precision", "recall", "f1-measure"), precision_recall_f1(counts), strict=True)
            metrics.update((f"{score}-{name}", value) for score, value in scores)
        if reset:
            self.reset()
        return metrics
