"""Word sense disambiguation by the nearest mean vector: section 5.3 and Table 5 of the paper."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import tee
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from elmo_tasks.files.lines import numbered_lines
from elmo_tasks.paper.static_vectors import unit
from elmo_tasks.paper.wsd_corpus import WsdCorpus, WsdInstance
from elmo_tasks.vectors.devices import Device
from elmo_tasks.vectors.elmo import Elmo

__all__ = [
    "AnsweredSet",
    "SenseVectors",
    "WordSenses",
    "first_senses_of_wordnet",
    "measure_senses",
    "score_of",
    "scores_of",
]

# Tolerance of cosines: rounding in different batches changes them by less.
_ROUNDING = 5e-7
# The test sets of the paper: by the published scores of each set, WordNet's first senses reach 65.9
# on these four together, as in its Table 5, and 65.2 with SemEval-2007.
_OF_THE_PAPER = ("senseval2", "senseval3", "semeval2013", "semeval2015")
# Parts of speech by their number in sense keys. WordNet numbers the senses of adjectives and
# satellites together.
_PARTS_OF_SPEECH = {"1": "NOUN", "2": "VERB", "3": "ADJ", "4": "ADV", "5": "ADJ"}

_MOST_FREQUENT = (
    "the training data, no WordNet: the most frequent sense there, and none for other lemmas"
)

Lemma = tuple[str, str]
"""A lemma and its part of speech."""


def measure_senses(
    bilm: str, data: Path, *, wordnet: Path | None = None, device: Device = None
) -> dict[str, Any]:
    """
    The numbers of Table 5: scores on the sets in `test/` of a folder, with the senses in `train/`.

    # Parameters

    wordnet : `Path`, optional
        The folder of WordNet 3.0, which has a first sense for lemmas that are not in `train/`.
    """
    (training,) = WsdCorpus.find(data / "train")
    first_senses = None
    if wordnet is not None:
        first_senses = first_senses_of_wordnet(wordnet)
    senses = WordSenses(Elmo.from_pretrained(bilm, device=device), training, first_senses)
    answered_sets = [senses.answer(corpus) for corpus in WsdCorpus.find(data / "test")]
    counts_of_sets = {}
    for answered in answered_sets:
        counts_of_sets[answered.name] = {
            "lemma_not_in_training": answered.n_unseen,
            "unanswered": answered.n_unanswered,
        }
    return {
        "bilm": Path(bilm).resolve().name,
        "training": training.name,
        "wordnet": first_senses is not None,
        "distance": "cosine",
        "instances_of_training": senses.n_instances,
        "senses": len(senses.senses),
        "first_senses": _MOST_FREQUENT if first_senses is None else "WordNet",
        "scores": scores_of(answered_sets),
        "sets": counts_of_sets,
    }


def first_senses_of_wordnet(folder: str | PathLike[str]) -> dict[Lemma, str]:
    """
    The key of the first sense of each lemma, from WordNet 3.0's `index.sense` in a folder or in its
    `dict`.
    """
    path = Path(folder, "index.sense")
    if not path.exists():
        path = Path(folder, "dict", "index.sense")
    senses = {}
    for _, line in numbered_lines(path):
        key, _, sense_number, _ = line.split()
        if sense_number == "1":
            lemma, _, lexical_sense = key.partition("%")
            pos = _PARTS_OF_SPEECH[lexical_sense[0]]
            senses[lemma, pos] = key
    return senses


class SenseVectors:
    """
    A vector for each sense in the training data: the mean over its words, in each layer of the
    biLM. A word with several senses counts for each of them.

    The paper does not name a distance; context2vec (Melamud et al. 2016), the source of its
    protocol, uses the cosine.
    """

    def __init__(self) -> None:
        # A sum has the direction of the mean. Shape of each: (n_layers, dim)
        self._sums: dict[str, np.ndarray] = {}
        self._counts: Counter[str] = Counter()
        # The senses of each lemma, in the order of the training data.
        self._candidates: dict[Lemma, dict[str, None]] = {}

    def __len__(self) -> int:
        """The number of senses."""
        return len(self._sums)

    @property
    def most_frequent(self) -> dict[Lemma, str]:
        """The most frequent sense of each lemma; among equally frequent ones, the first."""
        frequent = {}
        for lemma, senses in self._candidates.items():
            frequent[lemma] = max(senses, key=lambda sense: self._counts[sense])
        return frequent

    def add(self, instance: WsdInstance, vector: np.ndarray) -> None:
        """Adds a word of the training data, with its vector of shape `(n_layers, dim)`."""
        candidates = self._candidates.setdefault((instance.lemma, instance.pos), {})
        for sense in instance.senses:
            self._sums[sense] = self._sums.get(sense, 0) + vector.astype(np.float64)
            self._counts[sense] += 1
            candidates[sense] = None

    def nearest(self, instance: WsdInstance, vector: np.ndarray) -> list[str] | None:
        """
        For each layer, and then for the mean of the layers, the nearest sense that the lemma had in
        training with the same part of speech; `None` if it had none. Ties (up to rounding) go to
        the sense seen first in training. The vector has the shape `(n_layers, dim)`.
        """
        senses = list(self._candidates.get((instance.lemma, instance.pos), ()))
        if not senses:
            return None
        sums = np.stack([self._sums[sense] for sense in senses])
        # Shape: (n_senses, n_layers + 1, dim)
        means = unit(_with_mean(sums))
        # Shape: (n_layers + 1, dim)
        target = unit(_with_mean(vector.astype(np.float64)))
        # Shape: (n_senses, n_layers + 1)
        cosines = (means * target).sum(-1)
        are_nearest = cosines >= cosines.max(0) - _ROUNDING
        # For each layer, the index of the first of its nearest senses.
        first_nearest = are_nearest.argmax(0)
        return [senses[index] for index in first_nearest]


def _with_mean(vectors: np.ndarray) -> np.ndarray:
    """Shape `(..., n_layers, dim)` to `(..., n_layers + 1, dim)`."""
    return np.concatenate([vectors, vectors.mean(-2, keepdims=True)], -2)


@dataclass
class AnsweredSet:
    """
    A test set with its correct senses (`gold`), and the answers of each representation: `layer 0`,
    ..., `mean` (of the layers) and `first sense` (without vectors). `n_unseen` instances had no
    sense in training, and fall back to the first sense; `n_unanswered` of them have no first sense
    either.
    """

    name: str
    gold: dict[str, Sequence[str]] = field(default_factory=dict)
    answers: dict[str, dict[str, str]] = field(default_factory=dict)
    n_unseen: int = 0
    n_unanswered: int = 0


class WordSenses:
    """
    The paper's word sense disambiguation. It chooses the sense with the nearest mean vector, for
    all layers in one pass, and the first sense for lemmas that are not in the training data (SemCor
    3.0 in the paper). By default, the first sense is the most frequent one in the training data,
    and instances of other lemmas are unanswered.
    """

    def __init__(
        self, elmo: Elmo, training: WsdCorpus, first_senses: Mapping[Lemma, str] | None = None
    ) -> None:
        self._elmo = elmo
        self._names = [f"layer {layer}" for layer in range(elmo.n_layers)]
        self._names.append("mean")
        self.senses = SenseVectors()
        self.n_instances = 0
        for instance, vector in self._vectors(training):
            self.senses.add(instance, vector)
            self.n_instances += 1
        if first_senses is None:
            first_senses = self.senses.most_frequent
        self._first_senses = first_senses

    def answer(self, corpus: WsdCorpus) -> AnsweredSet:
        """The answers to a test set."""
        names = [*self._names, "first sense"]
        answered = AnsweredSet(corpus.name, answers={name: {} for name in names})
        for instance, vector in self._vectors(corpus):
            answered.gold[instance.id] = instance.senses
            first_sense = self._first_senses.get((instance.lemma, instance.pos))
            if first_sense is not None:
                answered.answers["first sense"][instance.id] = first_sense
            nearest = self.senses.nearest(instance, vector)
            if nearest is None:
                answered.n_unseen += 1
                if first_sense is None:
                    answered.n_unanswered += 1
                    continue
                nearest = [first_sense] * len(self._names)
            for name, sense in zip(self._names, nearest, strict=True):
                answered.answers[name][instance.id] = sense
        return answered

    def _vectors(self, corpus: WsdCorpus) -> Iterator[tuple[WsdInstance, np.ndarray]]:
        """Each instance with the mean over its words, of shape `(n_layers, dim)`."""
        sentences, to_embed = tee(sentence for sentence in corpus if sentence.instances)
        words = (sentence.words for sentence in to_embed)
        embedded = self._elmo.embed_iter(words, layers="all")
        is_empty = True
        for sentence, layers in zip(sentences, embedded, strict=True):
            is_empty = False
            for instance in sentence.instances:
                yield instance, layers[:, instance.start : instance.end].mean(1)
        if is_empty:
            raise ValueError(f"expected sentences with instances, got none: {corpus.path}")


def score_of(sets: Sequence[AnsweredSet], name: str) -> dict[str, float]:
    """
    The scores of a representation in all sets together, as by the framework's `Scorer.java`: the
    correct share of the answers (precision) and of all instances (recall), their harmonic mean, the
    share of instances with an answer (coverage), and the number of instances. Any gold sense of an
    instance is correct.
    """
    n_instances = n_answers = n_right = 0
    for answered in sets:
        answers = answered.answers[name]
        n_instances += len(answered.gold)
        n_answers += len(answers)
        for instance, sense in answers.items():
            n_right += sense in answered.gold[instance]
    precision = n_right / max(1, n_answers)
    recall = n_right / n_instances
    f1 = 0.0
    if n_right:
        f1 = 2 * precision * recall / (precision + recall)
    return {
        "precision": precision,
        "recall": recall,
        "coverage": n_answers / n_instances,
        "f1": f1,
        "instances": n_instances,
    }


def scores_of(sets: Sequence[AnsweredSet]) -> dict[str, dict[str, dict[str, float]]]:
    """
    For each representation, the scores of each set, of the paper's four sets together
    (`"the four"`) if all of them are given, and of all sets together (`"ALL"`).
    """
    groups = {answered.name: [answered] for answered in sets}
    of_the_paper = [answered for answered in sets if answered.name in _OF_THE_PAPER]
    if len(of_the_paper) == len(_OF_THE_PAPER):
        groups["the four"] = of_the_paper
    groups["ALL"] = list(sets)
    scores = {}
    for name in sets[0].answers:
        scores[name] = {title: score_of(group, name) for title, group in groups.items()}
    return scores
