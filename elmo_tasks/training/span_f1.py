"""The score of CoNLL's shared tasks on named entities."""

from collections.abc import Iterable, Sequence

import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

from elmo_tasks.tags import tags_to_spans

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
            If the two are not of the same length.
        """
        counts = torch.zeros_like(self._counts)
        for predicted_tags, gold_tags in zip(predicted, gold, strict=True):
            if len(predicted_tags) != len(gold_tags):
                raise ValueError(
                    f"a sentence must have as many predicted as gold tags, but has {len(predicted_tags)} "
                    f"and {len(gold_tags)}"
                )
            predicted_spans, gold_spans = set(tags_to_spans(predicted_tags)), set(tags_to_spans(gold_tags))
            for column, spans in enumerate((predicted_spans & gold_spans, predicted_spans, gold_spans)):
                for label, _, _ in spans:
                    counts[self._rows[label], column] += 1
        # Every worker of a distributed training counts a part of the batch, and each of them reports the sum.
        self._counts += dist_reduce_sum(counts).cpu()

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `precision`, `recall` and `f1-measure`, each followed by `-overall` and by each type; 0 where there is
            nothing to divide by.
        """
        rows = {"overall": self._counts.sum(0), **{label: self._counts[row] for label, row in self._rows.items()}}
        metrics: dict[str, float] = {}
        for name, counts in rows.items():
            right, predicted, gold = counts.tolist()
            metrics[f"precision-{name}"] = right / predicted if predicted else 0.0
            metrics[f"recall-{name}"] = right / gold if gold else 0.0
            metrics[f"f1-measure-{name}"] = 2 * right / (predicted + gold) if predicted + gold else 0.0
        if reset:
            self.reset()
        return metrics
