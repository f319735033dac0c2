"""
The scores of CoNLL's shared tasks on named entities and on semantic roles, tested against ports of
their scripts, and of parts of speech, for each label.
"""

import logging
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import torch
from allennlp.common.util import is_distributed
from allennlp.training.metrics import Metric

from elmo_tasks.text.tags import tags_to_spans

__all__ = ["SpanF1", "SrlF1", "TagF1"]

logger = logging.getLogger(__name__)

# The keys of `_counts` that are not pairs of labels.
_PERFECT, _SENTENCES = "perfect", "sentences"
# Mistakes in the table.
_MOST = 20


class _SpanCounts(Metric):
    """
    Counts which label each span has in the gold data and in the prediction. A span is right if its
    words and its label are: one with a wrong boundary counts as missed, and as found where nothing
    is.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # Of pairs of a gold and a predicted label (one may be missing, ""), and of sentences.
        self._counts = Counter[Any]()

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """
        Counts sentences, each with its predicted and its gold tags in any scheme that
        `tags_to_spans` reads.
        """
        counts = Counter[Any]()
        for predicted_tags, gold_tags in zip(predicted, gold, strict=True):
            found, wanted = self._spans(predicted_tags), self._spans(gold_tags)
            counts.update((wanted.get(place, ""), found.get(place, "")) for place in wanted | found)
            counts.update({_SENTENCES: 1, _PERFECT: int(found == wanted)})
        self._counts += _of_all_workers(counts)

    def _spans(self, tags: Sequence[str]) -> dict[Hashable, str]:
        """The labels of the spans in a sentence, by their places."""
        return {(first, last): label for label, first, last in tags_to_spans(tags)}

    def _pairs(self) -> list[tuple[str, str, int]]:
        return [(*pair, count) for pair, count in self._counts.items() if isinstance(pair, tuple)]

    def _scores(self, label: str | None = None) -> tuple[float, float, float]:
        """Precision, recall and F1 of a label, or of all; 0 where the denominator is 0."""
        right = predicted = gold = 0
        for wanted, found, count in self._pairs():
            predicted += count * (found == label if label else found != "")
            gold += count * (wanted == label if label else wanted != "")
            right += count * (wanted == found and label in (None, found))
        return _share(right, predicted), _share(right, gold), _share(2 * right, predicted + gold)

    def _by_label(self) -> dict[str, float]:
        """Precision, recall and F1 of each label, by AllenNLP's names such as `precision-PER`."""
        scores: dict[str, float] = {}
        for label in sorted(set(chain.from_iterable(pair for *pair, _ in self._pairs())) - {""}):
            names = [f"{name}-{label}" for name in ("precision", "recall", "f1-measure")]
            scores |= dict(zip(names, self._scores(label), strict=True))
        return scores

    def _macro_f1(self) -> dict[str, float]:
        """The mean F1 of the labels that occur, in the gold data or in the prediction."""
        right = Counter[str]()
        both = Counter[str]()
        for gold, predicted, count in self._pairs():
            both.update({gold: count})
            both.update({predicted: count})
            if gold == predicted:
                right[gold] += count
        del both[""]
        scores = [2 * right[label] / total for label, total in both.items()]
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
        wrong = sorted(
            (-count, wanted, found) for wanted, found, count in self._pairs() if wanted != found
        )
        rows = [
            ("gold", "predicted", "times"),
            *((wanted, found, str(-n)) for n, wanted, found in wrong[:_MOST]),
        ]
        width = max(map(len, chain.from_iterable(rows)))
        return "\n".join(
            "  ".join((cell or "-").ljust(width) for cell in row).rstrip() for row in rows
        )


def _of_all_workers(counts: Counter[Any]) -> Counter[Any]:
    """
    In distributed training, the sum over all workers, each of which counts a part of the batch.
    """
    if not is_distributed():
        return counts
    of_workers: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(of_workers, counts)
    return sum(of_workers, Counter[Any]())


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
        names = ("precision-overall", "recall-overall", "f1-measure-overall")
        return dict(zip(names, self._scores(), strict=True))


@Metric.register("elmo_srl_f1")
class SrlF1(_SpanCounts):
    """
    Precision, recall and F1 of the arguments of predicates, by the rules of CoNLL-2005's
    `srl-eval.pl`, as in the paper:

    * A `C-ARG1` continues the last `ARG1` before it: both are parts of one argument, which is right if its label and
      all of its parts are. With no `ARG1` before it, it is an `ARG1` itself.
    * An `R-ARG1` is a separate argument.
    * The predicate, `V` and its continuations, is given and does not count.
    * A proposition, a predicate with its arguments, is perfect if all arguments are found, and no others.

    AllenNLP's `SpanBasedF1Measure` counts all words from the first to the last part of an argument,
    and its `SrlEvalScorer` needs Perl; neither supports distributed training.
    """

    def _spans(self, tags: Sequence[str]) -> dict[Hashable, str]:
        arguments: list[tuple[str, list[tuple[int, int]]]] = []
        # For each label, the parts of its last argument.
        last: dict[str, list[tuple[int, int]]] = {}
        for label, first_word, last_word in tags_to_spans(tags):
            head = label.removeprefix("C-")
            if label == head or head not in last:
                last[head] = []
                arguments.append((head, last[head]))
            last[head].append((first_word, last_word))
        return {tuple(parts): label for label, parts in arguments if label != "V"}

    def _overall(self) -> dict[str, float]:
        """`perfect` is the share of perfect propositions."""
        perfect = _share(self._counts[_PERFECT], self._counts[_SENTENCES])
        return dict(
            zip(("precision", "recall", "f1", "perfect"), (*self._scores(), perfect), strict=True)
        )


class TagF1(_SpanCounts):
    """The scores of each tag of words, or label of texts; over all, they are the accuracy."""

    def _spans(self, tags: Sequence[str]) -> dict[Hashable, str]:
        return dict(enumerate(tags))

    def _overall(self) -> dict[str, float]:
        return {}
