"""The scores of CoNLL's shared tasks on coreference."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

__all__ = ["CorefScores"]

Clusters = Sequence[Iterable[Hashable]]

# The rows of the counts: the measures whose mean the paper reports, and the recall of mentions.
_MEASURES = ("muc", "b_cubed", "ceafe")
_N_ROWS = len(_MEASURES) + 1


class _Counts(NamedTuple):
    """The numerators and the denominators of precision and recall."""

    precise: float
    n_predicted: float
    recalled: float
    n_gold: float


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
        # A row of `_Counts` per measure. float64, for sums of many fractions. Shape: (4, 4)
        self._counts = torch.zeros(_N_ROWS, len(_Counts._fields), dtype=torch.float64)

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
        for number, (predicted_clusters, gold_clusters) in enumerate(
            zip(predicted, gold, strict=True)
        ):
            predicted_sets = [set(cluster) for cluster in predicted_clusters]
            gold_sets = [set(cluster) for cluster in gold_clusters]
            kept_spans = () if kept is None else kept[number]
            rows = _counts(predicted_sets, gold_sets, kept_spans)
            counts += torch.tensor(rows, dtype=torch.float64)
        self._counts += dist_reduce_sum(counts).cpu()

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """
        `coref_precision`, `coref_recall` and `coref_f1`, each the mean of the three measures;
        `muc_f1`, `b_cubed_f1` and `ceafe_f1`; and `mention_recall`. 0 where the denominator is 0.
        """
        rows = [_Counts(*row) for row in self._counts.tolist()]
        mention_row = rows.pop()
        scores = []
        f1_scores = {}
        for measure, counts in zip(_MEASURES, rows, strict=True):
            precision = _ratio(counts.precise, counts.n_predicted)
            recall = _ratio(counts.recalled, counts.n_gold)
            f1 = _ratio(2 * precision * recall, precision + recall)
            scores.append((precision, recall, f1))
            f1_scores[f"{measure}_f1"] = f1
        mean_precision, mean_recall, mean_f1 = np.mean(scores, axis=0).tolist()
        metrics = {
            "coref_precision": mean_precision,
            "coref_recall": mean_recall,
            "coref_f1": mean_f1,
            **f1_scores,
            "mention_recall": _ratio(mention_row.recalled, mention_row.n_gold),
        }
        if reset:
            self.reset()
        return metrics


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def _counts(
    predicted: list[set[Hashable]], gold: list[set[Hashable]], kept: Iterable[Hashable]
) -> list[_Counts]:
    """The rows of one document: one for each of `_MEASURES`, and one of mentions."""
    predicted_cluster_of = {}
    for number, cluster in enumerate(predicted):
        for mention in cluster:
            predicted_cluster_of[mention] = number
    # How many mentions a gold cluster shares with a predicted cluster, for pairs that share any.
    # There are at most as many pairs as mentions.
    shared = Counter[tuple[int, int]]()
    for number, cluster in enumerate(gold):
        for mention in cluster:
            if mention in predicted_cluster_of:
                shared[number, predicted_cluster_of[mention]] += 1
    mentions = set().union(*gold)
    n_kept = len(mentions.intersection(kept))
    return [
        _muc(predicted, gold, shared),
        _b_cubed(predicted, gold, shared),
        _ceafe(predicted, gold, shared),
        _Counts(precise=0, n_predicted=0, recalled=n_kept, n_gold=len(mentions)),
    ]


def _muc(
    predicted: list[set[Hashable]], gold: list[set[Hashable]], shared: Counter[tuple[int, int]]
) -> _Counts:
    """
    Correct links: a cluster is split into its shared parts and the mentions that the other side
    lacks.
    """
    n_right = sum(shared.values()) - len(shared)
    return _Counts(n_right, _n_links(predicted), n_right, _n_links(gold))


def _n_links(clusters: list[set[Hashable]]) -> int:
    return sum(len(cluster) - 1 for cluster in clusters if cluster)


def _b_cubed(
    predicted: list[set[Hashable]], gold: list[set[Hashable]], shared: Counter[tuple[int, int]]
) -> _Counts:
    """For each mention, the share of its cluster that is also in its cluster on the other side."""
    precise = sum(count * count / len(predicted[column]) for (_, column), count in shared.items())
    recalled = sum(count * count / len(gold[row]) for (row, _), count in shared.items())
    n_predicted = sum(len(cluster) for cluster in predicted)
    n_gold = sum(len(cluster) for cluster in gold)
    return _Counts(precise, n_predicted, recalled, n_gold)


def _ceafe(
    predicted: list[set[Hashable]], gold: list[set[Hashable]], shared: Counter[tuple[int, int]]
) -> _Counts:
    """The largest total similarity of paired clusters."""
    # Imported here because it would slow down every start of `allennlp`.
    from scipy.optimize import linear_sum_assignment

    similarity = np.zeros((len(gold), len(predicted)))
    for (row, column), count in shared.items():
        similarity[row, column] = 2 * count / (len(gold[row]) + len(predicted[column]))
    pairs = linear_sum_assignment(similarity, maximize=True)
    best = float(similarity[pairs].sum())
    return _Counts(best, len(predicted), best, len(gold))
