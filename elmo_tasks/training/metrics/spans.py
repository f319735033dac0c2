"""The scores of CoNLL's shared tasks on named entities and on semantic roles."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

from elmo_tasks.tags import tags_to_spans

__all__ = ["SpanF1", "SrlF1"]

_CONTINUATION = "C-"


class _SpanCounts(Metric):
    """Counts of right, predicted and gold spans with some `labels`."""

    # The label of the predicate, which is given and does not count.
    _given: str | None = None

    def __init__(self, labels: Iterable[str]) -> None:
        self._rows = {label: row for row, label in enumerate(sorted(set(labels)))}
        self.reset()

    def reset(self) -> None:
        # Right, predicted and gold spans of each label; last, perfect and all sentences. Shape: (n_labels + 1, 3)
        self._counts = torch.zeros(len(self._rows) + 1, 3, dtype=torch.long)

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """Counts sentences, each with its predicted and its gold tags in any scheme that `tags_to_spans` reads."""
        counts = torch.zeros_like(self._counts)
        for predicted_tags, gold_tags in zip(predicted, gold, strict=True):
            found, wanted = self.spans_of(predicted_tags), self.spans_of(gold_tags)
            for column, spans in enumerate((found & wanted, found, wanted)):
                for label, *_ in spans:
                    counts[self._rows[label], column] += 1
            is_perfect = all(label == self._given for label, *_ in found ^ wanted)
            counts[-1] += torch.tensor([is_perfect, 1, 1])
        # In distributed training each worker counts a part of the batch, and all report the sum.
        self._counts += dist_reduce_sum(counts).cpu()

    def spans_of(self, tags: Sequence[str]) -> set[tuple[Any, ...]]:
        """The spans in the tags of a sentence, each with its label first."""
        raise NotImplementedError

    def counts(self) -> tuple[int, int, int]:
        """How many spans that count were right, predicted and gold since the last reset."""
        counted = [row for label, row in self._rows.items() if label != self._given]
        right, predicted, gold = self._counts[counted].sum(0).tolist()
        return right, predicted, gold

    def scores(self) -> dict[str, tuple[float, float, float]]:
        """Precision, recall and F1 of all spans, under "", and of each label; 0 where the denominator is 0."""
        rows = {"": self.counts(), **{label: self._counts[row].tolist() for label, row in self._rows.items()}}
        return {
            label: (
                right / predicted if predicted else 0.0,
                right / gold if gold else 0.0,
                2 * right / (predicted + gold) if predicted + gold else 0.0,
            )
            for label, (right, predicted, gold) in rows.items()
        }


@Metric.register("elmo_span_f1")
class SpanF1(_SpanCounts):
    """
    Precision, recall and F1 of whole entities (type, first and last word all right), as CoNLL's `conlleval` counts.
    AllenNLP's `SpanBasedF1Measure` refuses distributed training and tag sequences that are not well-formed, and merges
    types that begin with `C-`, which is for semantic roles.
    """

    def spans_of(self, tags: Sequence[str]) -> set[tuple[Any, ...]]:
        return set(tags_to_spans(tags))

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """`precision`, `recall` and `f1-measure`, each followed by `-overall` and by each type."""
        metrics = {
            f"{name}-{label or 'overall'}": value
            for label, values in self.scores().items()
            for name, value in zip(("precision", "recall", "f1-measure"), values, strict=True)
        }
        if reset:
            self.reset()
        return metrics


@Metric.register("elmo_srl_f1")
class SrlF1(_SpanCounts):
    """
    Precision, recall and F1 of the arguments of predicates, by the rules of CoNLL-2005's `srl-eval.pl`, as in the
    paper:

    * A `C-ARG1` continues the last `ARG1` before it: both are parts of one argument, which is right if its label and
      all of its parts are. With no `ARG1` before it, it is an `ARG1` itself.
    * An `R-ARG1` is an argument of its own.
    * The predicate, `V` and its continuations, is given and does not count.
    * A proposition, a predicate with its arguments, is perfect if all arguments are found, and no others.

    AllenNLP's `SpanBasedF1Measure` takes all words from the first part of an argument to its last, and its
    `SrlEvalScorer` needs Perl; both refuse distributed training.
    """

    _given = "V"

    def __init__(self, labels: Iterable[str]) -> None:
        super().__init__(label.removeprefix(_CONTINUATION) for label in labels)

    def spans_of(self, tags: Sequence[str]) -> set[tuple[Any, ...]]:
        arguments: list[tuple[str, list[tuple[int, int]]]] = []
        # For each label where its last argument is.
        last: dict[str, int] = {}
        for label, first_word, last_word in tags_to_spans(tags):
            head, part = label.removeprefix(_CONTINUATION), (first_word, last_word)
            if label != head and head in last:
                arguments[last[head]][1].append(part)
            else:
                last[head] = len(arguments)
                arguments.append((head, [part]))
        return {(label, tuple(parts)) for label, parts in arguments}

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """`precision`, `recall` and `f1`, also followed by `-` and a label; `perfect`, the share of propositions."""
        metrics = {
            f"{name}-{label}" if label else name: value
            for label, values in self.scores().items()
            for name, value in zip(("precision", "recall", "f1"), values, strict=True)
        }
        n_perfect, n_propositions, _ = self._counts[-1].tolist()
        metrics["perfect"] = n_perfect / n_propositions if n_propositions else 0.0
        if reset:
            self.reset()
        return metrics
