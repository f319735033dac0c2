"""The score of CoNLL's shared task of 2005 on semantic roles."""

from collections.abc import Iterable, Sequence

import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

from elmo_tasks.tags import tags_to_spans
from elmo_tasks.training.metrics.span_counts import count_spans, pairs_of_spans, precision_recall_f1

__all__ = ["SrlF1"]

Argument = tuple[str, tuple[tuple[int, int], ...]]
"""The label of an argument, and the first and last word of each of its parts."""

_PREDICATE = "V"
_CONTINUATION = "C-"


@Metric.register("elmo_srl_f1")
class SrlF1(Metric):
    """
    Precision, recall and F1 of the arguments of predicates, as CoNLL-2005's `srl-eval.pl` counts, whose score is that
    of the paper:

    * A `C-ARG1` continues the last `ARG1` before it: both are parts of one argument, which is right if its label and
      all of its parts are. With no `ARG1` before it, it is an `ARG1` itself.
    * An `R-ARG1` is an argument of its own.
    * The predicate, `V` and its continuations, is given and does not count.
    * A proposition, a predicate with its arguments, is perfect if all arguments are found, and no others.

    Registered as a `Metric` with name "elmo_srl_f1". AllenNLP's `SpanBasedF1Measure` takes all words from the first
    part of an argument to its last, and its `SrlEvalScorer` needs Perl; both refuse distributed training.

    # Parameters

    labels : `Iterable[str]`
        The labels of arguments, `ARG0` and the like; with or without those that begin with `C-`.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self._rows = {label: row for row, label in enumerate(sorted({_head(label) for label in labels}))}
        self.reset()

    def reset(self) -> None:
        # Right, predicted and gold arguments of each label; last, perfect and all propositions.
        # Shape: (n_labels + 1, 3)
        self._counts = torch.zeros(len(self._rows) + 1, 3, dtype=torch.long)

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """
        # Parameters

        predicted, gold : `Sequence[Sequence[str]]`
            The tags of the same propositions, in any scheme that `tags_to_spans` reads.

        # Raises

        `ValueError`
            If the two differ in length.
        """
        counts = torch.zeros_like(self._counts)
        for found, wanted in pairs_of_spans(predicted, gold, _arguments):
            count_spans(counts, self._rows, found, wanted)
            is_perfect = all(label == _PREDICATE for label, _ in found ^ wanted)
            counts[-1] += torch.tensor([is_perfect, 1, 1])
        # In distributed training each worker counts a part of the batch, and all report the sum.
        self._counts += dist_reduce_sum(counts).cpu()

    def counts(self) -> tuple[int, int, int]:
        """How many arguments but the predicate were right, predicted and gold since the last reset."""
        counted = [row for label, row in self._rows.items() if label != _PREDICATE]
        right, predicted, gold = self._counts[counted].sum(0).tolist()
        return right, predicted, gold

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `precision`, `recall` and `f1` of all arguments but the predicate, and each of them followed by `-` and a
            label; `perfect`, the share of perfect propositions. 0 where the denominator is 0.
        """
        rows = {"": torch.tensor(self.counts())}
        rows |= {f"-{label}": self._counts[row] for label, row in self._rows.items()}
        metrics: dict[str, float] = {}
        for name, counts in rows.items():
            scores = zip(("precision", "recall", "f1"), precision_recall_f1(counts), strict=True)
            metrics.update((f"{score}{name}", value) for score, value in scores)
        n_perfect, n_propositions, _ = self._counts[-1].tolist()
        metrics["perfect"] = n_perfect / n_propositions if n_propositions else 0.0
        if reset:
            self.reset()
        return metrics


def _head(label: str) -> str:
    """The label of the argument that a part belongs to."""
    return label.removeprefix(_CONTINUATION)


def _arguments(tags: Iterable[str]) -> set[Argument]:
    arguments: list[tuple[str, list[tuple[int, int]]]] = []
    # For each label where its last argument is.
    last: dict[str, int] = {}
    for label, first_word, last_word in tags_to_spans(tags):
        head, part = _head(label), (first_word, last_word)
        if label != head and head in last:
            arguments[last[head]][1].append(part)
        else:
            last[head] = len(arguments)
            arguments.append((head, [part]))
    return {(label, tuple(parts)) for label, parts in arguments}
