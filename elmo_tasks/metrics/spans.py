"""
The scores of CoNLL's shared tasks on named entities and on semantic roles, tested against ports of their scripts.
"""

from collections.abc import Sequence
from typing import Any

import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

from elmo_tasks.tags import tags_to_spans

__all__ = ["SpanF1", "SrlF1"]


class _SpanCounts(Metric):
    """Counts right, predicted and gold spans."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # Right, predicted and gold spans; perfect and all sentences.
        self._counts = torch.zeros(5, dtype=torch.long)

    def __call__(self, predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:
        """Counts sentences, each with its predicted and its gold tags in any scheme that `tags_to_spans` reads."""
        counts = torch.zeros_like(self._counts)
        for predicted_tags, gold_tags in zip(predicted, gold, strict=True):
            found, wanted = self._spans(predicted_tags), self._spans(gold_tags)
            counts += torch.tensor([len(found & wanted), len(found), len(wanted), found == wanted, 1])
        # In distributed training each worker counts a part of the batch, and all report the sum.
        self._counts += dist_reduce_sum(counts).cpu()

    def _spans(self, tags: Sequence[str]) -> set[Any]:
        """The spans in the tags of a sentence, with their labels."""
        return set(tags_to_spans(tags))

    def _scores(self, reset: bool) -> tuple[float, ...]:
        """Precision, recall, F1 and the share of perfect sentences; 0 where the denominator is 0."""
        right, predicted, gold, perfect, sentences = self._counts.tolist()
        if reset:
            self.reset()
        shares = ((right, predicted), (right, gold), (2 * right, predicted + gold), (perfect, sentences))
        return tuple(count / total if total else 0.0 for count, total in shares)


@Metric.register("elmo_span_f1")
class SpanF1(_SpanCounts):
    """
    Precision, recall and F1 of whole entities (type, first and last word all right), as in CoNLL's
    `conlleval`. AllenNLP's `SpanBasedF1Measure` does not support distributed training, rejects ill-formed tag
    sequences, and merges types that begin with `C-`, which is for semantic roles.
    """

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """`precision-overall`, `recall-overall` and `f1-measure-overall`, AllenNLP's names."""
        precision, recall, f1, _ = self._scores(reset)
        return {"precision-overall": precision, "recall-overall": recall, "f1-measure-overall": f1}


@Metric.register("elmo_srl_f1")
class SrlF1(_SpanCounts):
    """
    Precision, recall and F1 of the arguments of predicates, by the rules of CoNLL-2005's `srl-eval.pl`, as in
    the paper:

    * A `C-ARG1` continues the last `ARG1` before it: both are parts of one argument, which is right if its label and
      all of its parts are. With no `ARG1` before it, it is an `ARG1` itself.
    * An `R-ARG1` is a separate argument.
    * The predicate, `V` and its continuations, is given and does not count.
    * A proposition, a predicate with its arguments, is perfect if all arguments are found, and no others.

    AllenNLP's `SpanBasedF1Measure` counts all words from the first to the last part of an argument, and its
    `SrlEvalScorer` needs Perl; neither supports distributed training.
    """

    def _spans(self, tags: Sequence[str]) -> set[Any]:
        arguments: list[tuple[str, list[tuple[int, int]]]] = []
        # For each label, the parts of its last argument.
        last: dict[str, list[tuple[int, int]]] = {}
        for label, first_word, last_word in tags_to_spans(tags):
            head = label.removeprefix("C-")
            if label == head or head not in last:
                last[head] = []
                arguments.append((head, last[head]))
            last[head].append((first_word, last_word))
        return {(label, tuple(parts)) for label, parts in arguments if label != "V"}

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """`precision`, `recall` and `f1` of arguments, and `perfect`, the share of perfect propositions."""
        return dict(zip(("precision", "recall", "f1", "perfect"), self._scores(reset), strict=True))
