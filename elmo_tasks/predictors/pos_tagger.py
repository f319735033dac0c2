"""Part-of-speech taggers, which find the verbs of sentences for semantic roles and coreference."""

from collections.abc import Callable

import numpy as np

from elmo_tasks.files.shipped import PRETRAINED
from elmo_tasks.vectors.devices import Device
from elmo_tasks.vectors.elmo import Elmo, Precision

__all__ = ["PosTagger", "TagSentences", "spacy_tagger"]

TagSentences = Callable[[list[list[str]]], list[list[str]]]
"""From the words of sentences to a universal part of speech for each."""


class PosTagger:
    """
    Predicts the universal parts of speech of English words with a linear classifier on one layer of
    the biLM `small-open` (section 5.3 of the paper).
    """

    def __init__(self, device: Device = None, precision: Precision | None = None) -> None:
        with np.load(PRETRAINED / "pos-open" / "tagger.npz") as arrays:
            self._weight = arrays["weight"]
            self._bias = arrays["bias"]
            self._tags: list[str] = arrays["tags"].tolist()
            self._layer = int(arrays["layer"])
        elmo = Elmo.from_pretrained("small-open", device=device, precision=precision)
        self._elmo = elmo.share()

    def __call__(self, sentences: list[list[str]]) -> list[list[str]]:
        """A tag for each word: `NOUN`, `VERB`, `AUX` and so on."""
        tags = []
        # Shape of each: (n_words, dim)
        for vectors in self._elmo.embed(sentences, layers=self._layer, progress=False):
            # Shape: (n_words, n_tags)
            scores = vectors @ self._weight.T + self._bias
            best = scores.argmax(-1)
            tags.append([self._tags[number] for number in best])
        return tags


def spacy_tagger(model: str) -> TagSentences:
    """The tagger of a spaCy model, an installed package or a folder, for other languages."""
    import spacy
    from spacy.tokens import Doc

    pipeline = spacy.load(model, exclude=["ner", "parser"])

    def tag(sentences: list[list[str]]) -> list[list[str]]:
        docs = (Doc(pipeline.vocab, words=words) for words in sentences)
        tags = []
        for doc in pipeline.pipe(docs):
            tags.append([token.pos_ for token in doc])
        return tags

    return tag
