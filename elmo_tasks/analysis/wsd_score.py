"""Scores of word senses, as the scorer of the unified evaluation framework counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["WsdScore"]


@dataclass(frozen=True)
class WsdScore:
    """
    The numbers of the framework's `Scorer.java` (Raganato et al. 2017).

    # Parameters

    precision
        The right share of the answers.
    recall
        The right share of all instances.
    coverage
        The share of the instances that was answered.
    f1
        The harmonic mean of precision and recall; 0 where both are.
    instances
        How many have a right sense.
    """

    precision: float
    recall: float
    coverage: float
    f1: float
    instances: int

    @classmethod
    def of(cls, gold: Mapping[str, Sequence[str]], answers: Mapping[str, Sequence[str]]) -> "WsdScore":
        """
        # Parameters

        gold
            For each instance the senses that are right: one of them is enough.
        answers
            For each instance that was answered its senses, which share its point if there are several; the same sense
            twice counts once. Instances that are not in `gold` do not count, nor do empty answers.

        # Raises

        `ValueError`
            If there is nothing to score.
        """
        if not gold:
            raise ValueError("there must be at least one instance with a right sense, but there are no instances")
        right = 0.0
        n_answered = 0
        for name, senses in answers.items():
            given = set(senses)
            if name in gold and given:
                n_answered += 1
                right += len(given & set(gold[name])) / len(given)
        precision = right / n_answered if n_answered else 0.0
        recall = right / len(gold)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        return cls(precision, recall, n_answered / len(gold), f1, len(gold))
