"""Part-of-speech taggers, which find the verbs of sentences."""

from collections.abc import Callable

import numpy as np

from elmo_tasks.files.shipped import PRETRAINED
from elmo_tasks.vectors.devices import Device
from elmo_tasks.vectors.elmo import Elmo, Precision

__all__ = ["PosTagger", "spacy_tagger"]


class PosTagger:
    """
    Predicts the universal parts of speech of English words with a linear classifier on one layer of
    the biLM `small-open` (section 5.3 of the paper).
    """

    def __init__(self, device: Device = None, precision: Precision | None = None) -> None:
        with np.load(PRETRAINED / "pos-open" / "tagger.npz") as arrays:
            self._weight, self._bias = arrays["weight"], arrays["bias"]
            self._tags: list[str] = arrays["tags"].tolist()
            self._layer = int(arrays["layer"])
        self._elmo = Elmo.from_pretrained("small-open", device=device, precision=precision).share()

    def __call__(self, sentences: list[list[str]]) -> list[list[str]]:
        """A tag for each word: `NOUN`, `VERB`, `AUX` and so on."""
        # Shape of each: (n_words, dim)
        vectors = self._elmo.embed(sentences, layers=self._layer, progress=False)
        # Shape of each: (n_words, n_tags)
        scores = [of_words @ self._weight.T + self._bias for of_words in vectors]
        return [[self._tags[index] for index in of_words.argmax(-1)] for of_words in scores]


def spacy_tagger(model: str) -> Callable[[list[list[str]]], list[list[str]]]:
    """The tagger of a spaCy model, an installed package or a folder, for other languages."""
    import spacy
    from spacy.tokens import Doc

    pipeline = spacy.load(model, exclude=["ner", "parser"])
    return lambda sentences: [
        [token.pos_ for token in document]
        for document in pipeline.pipe(Doc(pipeline.vocab, words=words) for words in sentences)
    ]
