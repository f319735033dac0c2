"""A part-of-speech tagger for English, and what finds the verbs of a sentence."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from elmo_tasks.modules.contextual.pretrained_bilm import shared_bilm
from elmo_tasks.shipped import PRETRAINED
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["PosTagger", "VerbFinder"]


class PosTagger:
    """
    Predicts the universal parts of speech of English words with a linear classifier on one layer of the biLM
    `small-open` (section 5.3 of the paper).
    """

    def __init__(self) -> None:
        with np.load(PRETRAINED / "pos-open" / "tagger.npz") as arrays:
            self._weight, self._bias = arrays["weight"], arrays["bias"]
            self._tags: list[str] = arrays["tags"].tolist()
            self._layer = int(arrays["layer"])
        self._elmo = Elmo(shared_bilm("small-open", Elmo.from_pretrained("small-open").bilm))

    def __call__(self, sentences: list[list[str]]) -> list[list[str]]:
        """A tag for each word: `NOUN`, `VERB`, `AUX` and so on."""
        # Shape of each: (n_words, dim)
        vectors = self._elmo.embed(sentences, layers=self._layer, progress=False)
        # Shape of each: (n_words, n_tags)
        scores = [of_words @ self._weight.T + self._bias for of_words in vectors]
        return [[self._tags[index] for index in of_words.argmax(-1)] for of_words in scores]


class VerbFinder:
    """
    Finds verbs and auxiliaries, as AllenNLP's predictor does.

    # Parameters

    spacy_model : `str`, optional
        A spaCy model with a tagger, for other languages: an installed package or a folder. `None`: `PosTagger`.
    """

    def __init__(self, spacy_model: str | None = None) -> None:
        self._spacy_model = spacy_model

    def __call__(self, sentences: list[list[str]]) -> list[list[int]]:
        """The positions of the verbs in each sentence, counted from 0."""
        # The tagger is loaded only if it is needed.
        tags = self._tagger(sentences) if any(sentences) else sentences
        return [[i for i, tag in enumerate(of_words) if tag in ("VERB", "AUX")] for of_words in tags]

    @cached_property
    def _tagger(self) -> Callable[[list[list[str]]], list[list[str]]]:
        if self._spacy_model is None:
            return PosTagger()
        import spacy
        from spacy.tokens import Doc

        model = spacy.load(self._spacy_model, exclude=["ner", "parser"])
        return lambda sentences: [
            [token.pos_ for token in document]
            for document in model.pipe(Doc(model.vocab, words=words) for words in sentences)
        ]
