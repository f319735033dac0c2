"""The verbs of sentences, by a tagger for parts of speech."""

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from elmo_tasks.shipped import PRETRAINED
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["PosTagger", "VerbFinder"]

logger = logging.getLogger(__name__)

_SPACY_MODEL = "en_core_web_sm"


class PosTagger:
    """
    The universal parts of speech of English words, by a linear classifier on one layer of the biLM `small-open`
    (section 5.3 of the paper).
    """

    def __init__(self, path: Path = PRETRAINED / "pos-open" / "tagger.npz") -> None:
        with np.load(path) as arrays:
            self._weight, self._bias = arrays["weight"], arrays["bias"]
            self._tags: list[str] = arrays["tags"].tolist()
            self._layer = int(arrays["layer"])
        self._elmo = Elmo.from_pretrained("small-open")

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """A tag for each word: `NOUN`, `VERB`, `AUX` and so on."""
        # Shape of each: (n_words, dim)
        vectors = self._elmo.embed([list(words) for words in sentences], layers=self._layer, progress=False)
        # Shape of each: (n_words, n_tags)
        scores = [of_words @ self._weight.T + self._bias for of_words in vectors]
        return [[self._tags[index] for index in of_words.argmax(-1)] for of_words in scores]


class VerbFinder:
    """
    Finds verbs and auxiliaries, as AllenNLP's predictor does.

    # Parameters

    spacy_model : `str`, optional
        A model of spaCy with a tagger, installed or a folder. `None`: `en_core_web_sm` if it is installed, and
        `PosTagger` otherwise.
    """

    def __init__(self, spacy_model: str | None = None) -> None:
        self._spacy_model = spacy_model

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """The numbers of the verbs of each sentence, counted from 0."""
        given = [words for words in sentences if words]
        tags = iter(self._tags(given) if given else [])
        found = [next(tags) if words else [] for words in sentences]
        return [[i for i, tag in enumerate(of_words) if tag in ("VERB", "AUX")] for of_words in found]

    def _tags(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        import spacy
        from spacy.tokens import Doc

        if self._spacy_model is None and not spacy.util.is_package(_SPACY_MODEL):
            return self._ours(sentences)
        documents = (Doc(self._spacy.vocab, words=list(words)) for words in sentences)
        return [[token.pos_ for token in document] for document in self._spacy.pipe(documents)]

    @cached_property
    def _ours(self) -> PosTagger:
        logger.warning("%s is not installed: verbs are found by the smaller tagger of elmo_tasks", _SPACY_MODEL)
        return PosTagger()

    @cached_property
    def _spacy(self) -> Any:
        import spacy

        return spacy.load(self._spacy_model or _SPACY_MODEL, exclude=["ner", "parser"])
