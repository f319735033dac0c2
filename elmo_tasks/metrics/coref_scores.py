"""The scores of CoNLL's shared tasks on coreference."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

__all__ = ["CorefScores"]

Clusters = Sequence[Iterable[Hashable]]
# Numerator and denominator of precision, then of recall.
Counts = tuple[float, float, float, float]

_MEASURES = ("muc", "b_cubed", "ceafe", "mention")


@Metric.register("elmo_coref_scores")
class CorefScores(Metric):
    """
    MUC, B-cubed and CEAF-e (with the similarity phi 4 of Luo 2005) over all documents, as in the
    reference scorer v8.01 (Pradhan et al. 2014); the mean of their F1, which the paper reports; and
    the recall of mentions among the spans that a model keeps.

    AllenNLP's `conll_coref_scores` ignores clusters of one mention in B-cubed and on one side of
    CEAF-e. Its workers wait for each other after every document, so distributed training hangs if
    their batches differ in size.
    """

    supports_distributed = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # A row of `Counts` per measure. float64, for sums of many fractions. Shape: (4, 4)
        self._counts = torch.zeros(len(_MEASURES), 4, dtype=torch.float64)

    def __call__(
        self,
        predicted: Sequence[Clusters],
        gold: Sequence[Clusters],
        kept: Sequence[Iterable[Hashable]] | None = None,
    ) -> None:
        """
        The clusters of each document, with mentions such as `(start, end)`; a mention is in one
        cluster. For each document, `kept` has the spans for which a model looks for antecedents.
        """
        # In distributed training each worker counts a part of the batch, and all report the sum.
        counts = torch.zeros_like(self._counts)
        for number, (system, key) in enumerate(zip(predicted, gold, strict=True)):
            sets = [set(cluster) for cluster in system], [set(cluster) for cluster in key]
            counts += torch.tensor(
                _counts(*sets, () if kept is None else kept[number]), dtype=torch.float64
            )
        self._counts += dist_reduce_sum(counts).cpu()

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """
        `coref_precision`, `coref_recall` and `coref_f1`, each the mean of the three measures;
        `muc_f1`, `b_cubed_f1` and `ceafe_f1`; and `mention_recall`. 0 where the denominator is 0.
        """
        scores = []
        for precise, predicted, recalled, gold in self._counts.tolist():
            precision, recall = _ratio(precise, predicted), _ratio(recalled, gold)
            scores.append((precision, recall, _ratio(2 * precision * recall, precision + recall)))
        means = np.mean(scores[:3], axis=0)
        names = ("coref_precision", "coref_recall", "coref_f1")
        metrics = {name: float(mean) for name, mean in zip(names, means, strict=True)}
        metrics |= {
            f"{measure}_f1": f1 for measure, (_, _, f1) in zip(_MEASURES[:3], scores, strict=False)
        }
        metrics["mention_recall"] = scores[3][1]
        if reset:
            self.reset()
        return metrics


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def _counts(
    system: list[set[Hashable]], key: list[set[Hashable]], kept: Iterable[Hashable]
) -> list[Counts]:
    """A row for each of `_MEASURES`, of one document."""
    cluster_of = {mention: number for number, cluster in enumerate(system) for mention in cluster}
    # How many mentions a cluster of the key shares with a cluster of the system, for pairs that
    # share any. There are at most as many pairs as mentions.
    shared = Counter(
        (row, cluster_of[mention])
        for row, cluster in enumerate(key)
        for mention in cluster
        if mention in cluster_of
    )
    mentions = set().union(*key)
    recall = 0, 0, len(mentions.intersection(kept)), len(mentions)
    return [
        _muc(system, key, shared),
        _b_cubed(system, key, shared),
        _ceafe(system, key, shared),
        recall,
    ]


def _muc(
    system: list[set[Hashable]], key: list[set[Hashable]], shared: Counter[tuple[int, int]]
) -> Counts:
    """
    Correct links: a cluster is split into its shared parts and the mentions that the other side
    lacks.
    """
    right = sum(shared.values()) - len(shared)
    n_system, n_key = (
        sum(len(cluster) - 1 for cluster in clusters if cluster) for clusters in (system, key)
    )
    return right, n_system, right, n_key


def _b_cubed(
    system: list[set[Hashable]], key: list[set[Hashable]], shared: Counter[tuple[int, int]]
) -> Counts:
    """For each mention, the share of its cluster that is also in its cluster on the other side."""
    precise = sum(count * count / len(system[column]) for (_, column), count in shared.items())
    recalled = sum(count * count / len(key[row]) for (row, _), count in shared.items())
    return precise, sum(map(len, system)), recalled, sum(map(len, key))


def _ceafe(
    system: list[set[Hashable]], key: list[set[Hashable]], shared: Counter[tuple[int, int]]
) -> Counts:
    """The largest total similarity of paired clusters."""
    # Imported here because it would slow down every start of `allennlp`.
    from scipy.optimize import linear_sum_assignment

    similarity = np.zeros((len(key), len(system)))
    for (row, column), count in shared.items():
        similarity[row, column] = 2 * count / (len(key[row]) + len(system[column]))
    best = float(similarity[linear_sum_assignment(similarity, maximize=True)].sum())
    return best, len(system), best, len(key)
