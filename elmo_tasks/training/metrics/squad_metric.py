"""The scores of SQuAD."""

from collections import Counter
from collections.abc import Sequence

import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric
from allennlp_models.rc.tools.squad import normalize_answer

__all__ = ["SquadEmF1"]


@Metric.register("elmo_squad_em_f1")
class SquadEmF1(Metric):
    """
    Exact match and F1 of answers as the official script for SQuAD 1.1 (`evaluate-v1.1.py`) computes them: ignoring
    case, punctuation, articles and white space, and for each question against the best gold answer.
    Both are from 0 to 1, where the script has percent.

    Registered as a `Metric` with name "elmo_squad_em_f1". AllenNLP's `squad`, whose normalisation is used here,
    follows the script for SQuAD 2.0: two answers that are empty after normalisation, such as "the", have the F1 1
    there, and 0 here.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # Exact matches, sum of F1, questions.
        self._sums = torch.zeros(3, dtype=torch.double)

    def __call__(self, predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> None:
        """
        # Parameters

        predicted : `Sequence[str]`
            The answers of a batch of questions.
        gold : `Sequence[Sequence[str]]`
            One or more right answers of each.

        # Raises

        `ValueError`
            If the two differ in length, or a question has no right answer.
        """
        sums = torch.zeros_like(self._sums)
        for answer, right_answers in zip(predicted, gold, strict=True):
            if not right_answers:
                raise ValueError(
                    f"a question must have at least one right answer, but the one answered with {answer!r} has none"
                )
            exact = max(_exact_match(answer, right) for right in right_answers)
            f1 = max(_f1(answer, right) for right in right_answers)
            sums += torch.tensor([exact, f1, 1.0], dtype=sums.dtype)
        # In distributed training each worker scores a part of the batch, and all report the mean.
        self._sums += dist_reduce_sum(sums).cpu()

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `em` and `f1`, from 0 to 1; 0 where there was no question.
        """
        exact, f1, n_questions = self._sums.tolist()
        if reset:
            self.reset()
        return {"em": exact / max(n_questions, 1.0), "f1": f1 / max(n_questions, 1.0)}


def _exact_match(answer: str, right_answer: str) -> float:
    return float(normalize_answer(answer) == normalize_answer(right_answer))


def _f1(answer: str, right_answer: str) -> float:
    """The F1 of the words, each counted as often as it occurs in both."""
    words, right_words = (normalize_answer(text).split() for text in (answer, right_answer))
    n_common = (Counter(words) & Counter(right_words)).total()
    return 2 * n_common / (len(words) + len(right_words)) if n_common else 0.0
