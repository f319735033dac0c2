"""
The scores of CoNLL's shared tasks on named entities and on semantic roles, tested against ports of
their scripts, and of parts of speech, for each label.
"""

import logging
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import torch
from allennlp.common.util import is_distributed
from allennlp.training.metrics import Metric

from elmo_tasks.text.tags import tags_to_spans

__all__ = ["SpanF1", "SrlF1", "TagF1"]

logger = logging.getLogger(__name__)

# Rows in the table of mistakes.
_MAX_MISTAKES = 20


@dataclass
class _Counts:
    """The counts of spans and of sentences."""

    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each pair of a gold and a predicted label occurs; `""` where there is no span."""
    n_sentences: int = 0
    n_perfect: int = 0
    """Sentences without a mistake."""

    def add(self, other: "_Counts") -> None:
        self.pairs.update(other.pairs)
        self.n_sentences += other.n_sentences
        self.n_perfect += other.n_perfect


class _SpanCounts(Metric):
    """
    Counts which label each span has in the gold data and in the prediction. A span is right if its
    words and its label are: one with a wrong boundary counts as missed, and as found where nothing
    is.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._counts = _Counts()

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """
        Counts sentences, each with its predicted and its gold tags in any scheme that
        `tags_to_spans` reads.
        """
        counts = _Counts()
        for predicted_tags, gold_tags in zip(predicted, gold, strict=True):
            predicted_labels = self._labels_of_spans(predicted_tags)
            gold_labels = self._labels_of_spans(gold_tags)
            for span in gold_labels | predicted_labels:
                pair = (gold_labels.get(span, ""), predicted_labels.get(span, ""))
                counts.pairs[pair] += 1
            counts.n_sentences += 1
            if predicted_labels == gold_labels:
                counts.n_perfect += 1
        for worker_counts in _of_all_workers(counts):
            self._counts.add(worker_counts)

    def _labels_of_spans(self, tags: Sequence[str]) -> dict[Hashable, str]:
        """The labels of the spans in a sentence, by their words."""
        return {(first, last): label for label, first, last in tags_to_spans(tags)}

    def _scores(self, label: str | None = None) -> tuple[float, float, float]:
        """Precision, recall and F1 of a label, or of all; 0 where the denominator is 0."""
        n_right = n_predicted = n_gold = 0
        for (gold, predicted), count in self._counts.pairs.items():
            if _is_counted(predicted, label):
                n_predicted += count
            if _is_counted(gold, label):
                n_gold += count
                if gold == predicted:
                    n_right += count
        precision = _share(n_right, n_predicted)
        recall = _share(n_right, n_gold)
        return precision, recall, _share(2 * n_right, n_predicted + n_gold)

    def _by_label(self) -> dict[str, float]:
        """Precision, recall and F1 of each label, by AllenNLP's names such as `precision-PER`."""
        labels = set(chain.from_iterable(self._counts.pairs))
        scores = {}
        for label in sorted(labels - {""}):
            precision, recall, f1 = self._scores(label)
            scores[f"precision-{label}"] = precision
            scores[f"recall-{label}"] = recall
            scores[f"f1-measure-{label}"] = f1
        return scores

    def _macro_f1(self) -> dict[str, float]:
        """The mean F1 of the labels that occur, in the gold data or in the prediction."""
        right = Counter[str]()
        gold_and_predicted = Counter[str]()
        for (gold, predicted), count in self._counts.pairs.items():
            gold_and_predicted[gold] += count
            gold_and_predicted[predicted] += count
            if gold == predicted:
                right[gold] += count
        del gold_and_predicted[""]
        scores = [2 * right[label] / total for label, total in gold_and_predicted.items()]
        return {"macro_f1": _share(sum(scores), len(scores))}

    def _overall(self) -> dict[str, float]:
        raise NotImplementedError

    def get_metric(self, reset: bool = False, verbose: bool = False) -> dict[str, float]:
        """
        With `macro_f1`, the mean F1 of the labels. `verbose` adds the scores of each label, and
        logs which labels are taken for which.
        """
        metrics = self._overall() | self._macro_f1()
        if verbose:
            metrics |= self._by_label()
            logger.info("most frequent mistakes:\n%s", self.mistakes())
        if reset:
            self.reset()
        return metrics

    def mistakes(self) -> str:
        """A table of the gold labels and what they are taken for; `-` where there is no span."""
        mistakes = []
        for (gold, predicted), count in self._counts.pairs.items():
            if gold != predicted:
                mistakes.append((-count, gold, predicted))
        rows = [("gold", "predicted", "times")]
        for negative_count, gold, predicted in sorted(mistakes)[:_MAX_MISTAKES]:
            rows.append((gold or "-", predicted or "-", str(-negative_count)))
        width = max(len(cell) for cell in chain.from_iterable(rows))
        lines = []
        for row in rows:
            line = "  ".join(cell.ljust(width) for cell in row)
            lines.append(line.rstrip())
        return "\n".join(lines)


def _of_all_workers(counts: _Counts) -> list[_Counts]:
    """
    The counts of each worker: in distributed training, every worker counts a part of the batch.
    """
    if not is_distributed():
        return [counts]
    counts_of_workers = [_Counts() for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather_object(counts_of_workers, counts)
    return counts_of_workers


def _is_counted(label: str, wanted: str | None) -> bool:
    """Whether it is the wanted label, or without one, any label."""
    if wanted is None:
        return label != ""
    return label == wanted


def _share(count: float, total: int) -> float:
    return count / total if total else 0.0


@Metric.register("elmo_span_f1")
class SpanF1(_SpanCounts):
    """
    Precision, recall and F1 of whole entities (type, first and last word all right), as in CoNLL's
    `conlleval`. AllenNLP's `SpanBasedF1Measure` does not support distributed training, rejects
    ill-formed tag sequences, and merges types that begin with `C-`, which is for semantic roles.
    """

    def _overall(self) -> dict[str, float]:
        """AllenNLP's names."""
        precision, recall, f1 = self._scores()
        return {"precision-overall": precision, "recall-overall": recall, "f1-measure-overall": f1}


@Metric.register("elmo_srl_f1")
class SrlF1(_SpanCounts):
    """
    Precision, recall and F1 of the arguments of predicates, by the rules of CoNLL-2005's
    `srl-eval.pl`, as in the paper:

    * A `C-ARG1` continues the last `ARG1` before it: both are parts of one argument, which is right
      if its label and all of its parts are. With no `ARG1` before it, it is an `ARG1` itself.
    * An `R-ARG1` is a separate argument.
    * The predicate, `V` and its continuations, is given and does not count.
    * A proposition, a predicate with its arguments, is perfect if all arguments are found, and no
      others.

    AllenNLP's `SpanBasedF1Measure` counts all words from the first to the last part of an argument,
    and its `SrlEvalScorer` needs Perl; neither supports distributed training.
    """

    def _labels_of_spans(self, tags: Sequence[str]) -> dict[Hashable, str]:
        arguments: list[tuple[str, list[tuple[int, int]]]] = []
        # For each label, the parts of its last argument.
        last_parts: dict[str, list[tuple[int, int]]] = {}
        for label, first_word, last_word in tags_to_spans(tags):
            continued_label = label.removeprefix("C-")
            is_new = label == continued_label or continued_label not in last_parts
            if is_new:
                last_parts[continued_label] = []
                arguments.append((continued_label, last_parts[continued_label]))
            last_parts[continued_label].append((first_word, last_word))
        return {tuple(parts): label for label, parts in arguments if label != "V"}

    def _overall(self) -> dict[str, float]:
        """`perfect` is the share of perfect propositions."""
        precision, recall, f1 = self._scores()
        perfect = _share(self._counts.n_perfect, self._counts.n_sentences)
        return {"precision": precision, "recall": recall, "f1": f1, "perfect": perfect}


class TagF1(_SpanCounts):
    """
    The scores of each tag of words, or of each label of texts. Over all of them together,
    precision, recall and F1 would equal the accuracy, so they are left out.
    """

    def _labels_of_spans(self, tags: Sequence[str]) -> dict[Hashable, str]:
        return dict(enumerate(tags))

    def _overall(self) -> dict[str, float]:
        return {}
