"""Word sense disambiguation: Table 5 of the paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import numpy as np

from elmo_tasks.analysis.first_senses import FirstSenses
from elmo_tasks.analysis.sense_vectors import SenseVectors, instance_vectors
from elmo_tasks.analysis.wsd_corpus import WsdCorpus, WsdInstance
from elmo_tasks.analysis.wsd_score import WsdScore
from elmo_tasks.progress import progress_bar
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["AnsweredSet", "WordSenses", "scores_of", "table_of"]

# The sets of the paper: with the published scores of the sets, the first senses of WordNet come to 65.9 on these
# four together, as in its Table 5, and to 65.2 with SemEval-2007.
_OF_THE_PAPER = ("senseval2", "senseval3", "semeval2013", "semeval2015")
_FOUR, _ALL, _FIRST_SENSE = "the four", "ALL", "first sense"
_MOST_FREQUENT = "the training data, no WordNet: the most frequent sense there, and none for other lemmas"


@dataclass
class AnsweredSet:
    """
    A test set and its answers.

    # Parameters

    name
        The name.
    gold
        The right senses of each instance.
    answers
        For each representation the answer to each instance that has one: `layer 0`, ..., `mean` (of the layers) and
        `first sense` (for comparison, without any vectors).
    n_unseen
        Instances whose lemma had no sense in training, which fall back on the first sense.
    n_unanswered
        Those of them that have no first sense either.
    """

    name: str
    gold: dict[str, Sequence[str]] = field(default_factory=dict)
    answers: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    n_unseen: int = 0
    n_unanswered: int = 0


class WordSenses:
    """
    The paper's word sense disambiguation (section 5.3): the nearest of the mean vectors of senses, computed for all
    layers at once, and the first sense for lemmas that were not in the training data.

    # Parameters

    elmo
        The biLM.
    training
        The data to learn the senses from; the paper has SemCor 3.0.
    first_senses
        The back-off. `None`: the most frequent sense of the training data; instances of lemmas that are not there stay
        unanswered.
    distance
        See `SenseVectors`.
    max_sentences
        How many sentences to learn from. `None`: all.
    batch_tokens
        See `Elmo.embed_iter`.
    progress
        Whether to show a progress bar. `None`: if stderr is a terminal.

    # Raises

    `ValueError`
        If a file is not as it should be, or the distance is neither.
    """

    def __init__(
        self,
        elmo: Elmo,
        training: WsdCorpus,
        *,
        first_senses: FirstSenses | None = None,
        distance: Literal["cosine", "euclidean"] = "cosine",
        max_sentences: int | None = None,
        batch_tokens: int = 4096,
        progress: bool | None = None,
    ) -> None:
        self._elmo = elmo
        self._batch_tokens = batch_tokens
        self._progress = progress
        self._names = [*(f"layer {layer}" for layer in range(elmo.n_layers)), "mean"]
        senses = {sense for senses in training.keys.values() for sense in senses}
        self.senses = SenseVectors(sorted(senses), n_layers=elmo.n_layers, dim=elmo.dim, distance=distance)
        self.n_instances = 0
        for instance, vector in self._vectors(training, max_sentences):
            self.senses.add(instance, vector)
            self.n_instances += 1
        self.first_senses = first_senses or FirstSenses(self.senses.most_frequent, _MOST_FREQUENT)
        # If this WordNet is not that of the keys, it shows here.
        known = self.first_senses.known
        self.n_unknown_senses = 0 if known is None else len(senses - known)

    def answer(self, corpus: WsdCorpus) -> AnsweredSet:
        """
        # Returns

        `AnsweredSet`
            The answers to a test set.

        # Raises

        `ValueError`
            If a file is not as it should be.
        """
        answered = AnsweredSet(corpus.name, answers={name: {} for name in (*self._names, _FIRST_SENSE)})
        for instance, vector in self._vectors(corpus):
            answered.gold[instance.id] = instance.senses
            first = self.first_senses(instance)
            nearest = self.senses.nearest(instance, vector)
            if nearest is None:
                answered.n_unseen += 1
                answered.n_unanswered += first is None
            if first is not None:
                answered.answers[_FIRST_SENSE][instance.id] = [first]
                nearest = nearest or [first] * len(self._names)
            if nearest is not None:
                for name, sense in zip(self._names, nearest, strict=True):
                    answered.answers[name][instance.id] = [sense]
        return answered

    def _vectors(self, corpus: WsdCorpus, max_sentences: int | None = None) -> Iterator[tuple[WsdInstance, np.ndarray]]:
        total = len(corpus.keys) if max_sentences is None else None
        with progress_bar(total, self._progress, f"instances of {corpus.name}") as advance:
            sentences = islice(corpus, max_sentences)
            for instance, vector in instance_vectors(self._elmo, sentences, batch_tokens=self._batch_tokens):
                advance(1)
                yield instance, vector


def scores_of(sets: Sequence[AnsweredSet]) -> dict[str, dict[str, WsdScore]]:
    """
    # Returns

    `Dict[str, Dict[str, WsdScore]]`
        For each representation the score of each set; of the paper's four sets as one, if they are there; and of all
        sets as one.
    """
    groups = {answered.name: [answered] for answered in sets}
    of_the_paper = [answered for answered in sets if answered.name in _OF_THE_PAPER]
    if len(of_the_paper) == len(_OF_THE_PAPER):
        groups[_FOUR] = of_the_paper
    groups[_ALL] = list(sets)
    scores: dict[str, dict[str, WsdScore]] = {}
    for name in sets[0].answers:
        for group, members in groups.items():
            # Each set numbers its instances from the start.
            gold = {f"{part.name}.{key}": senses for part in members for key, senses in part.gold.items()}
            given = {f"{part.name}.{key}": senses for part in members for key, senses in part.answers[name].items()}
            scores.setdefault(name, {})[group] = WsdScore.of(gold, given)
    return scores


def table_of(sets: Sequence[AnsweredSet], scores: dict[str, dict[str, WsdScore]]) -> str:
    """The F1 scores in percent, and below them the numbers of instances, as a table for people."""
    groups = list(next(iter(scores.values())))
    columns: dict[str, dict[str, str]] = {
        name: {group: f"{100 * score.f1:.1f}" for group, score in row.items()} for name, row in scores.items()
    }
    first = next(iter(scores.values()))
    columns["instances"] = {group: f"{first[group].instances:,}" for group in groups}
    for title, attribute in (("lemma not in training", "n_unseen"), ("unanswered", "n_unanswered")):
        of_sets = {answered.name: getattr(answered, attribute) for answered in sets}
        of_sets[_FOUR] = sum(number for name, number in of_sets.items() if name in _OF_THE_PAPER)
        of_sets[_ALL] = sum(getattr(answered, attribute) for answered in sets)
        columns[title] = {group: f"{of_sets[group]:,}" for group in groups}
    width = max(map(len, columns))
    widths = {group: max(len(group), 6) for group in groups}
    lines = ["  ".join([f"{'F1, %':{width}}", *(f"{group:>{widths[group]}}" for group in groups)])]
    for title, row in columns.items():
        lines.append("  ".join([f"{title:{width}}", *(f"{row[group]:>{widths[group]}}" for group in groups)]))
    return "\n".join(lines)
