"""The results of `annotate`, as its outputs read them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elmo_tasks.files.json_files import json_lines
from elmo_tasks.text import located_sentences

if TYPE_CHECKING:
    from spacy.tokens import Doc

    from elmo_tasks import TrainedTask
    from elmo_tasks.text import Word

__all__ = ["Annotated", "Annotations"]


class Annotated(NamedTuple):
    """A document, and its results by the names of the tasks."""

    name: str
    texts: Sequence[str]
    kept: dict[str, Any]
    results: dict[str, Any]

    @property
    def row(self) -> dict[str, Any]:
        return {"document": self.name, **self.kept, **self.results}


@dataclass(frozen=True)
class Annotations:
    """The annotated documents in the files of all parts."""

    files: Sequence[Path]
    tasks: dict[str, "TrainedTask"]
    language: str
    kept: dict[str, str] = field(default_factory=dict)
    """The types of the columns that are kept, as in `Corpus.survey`."""

    def __iter__(self) -> Iterator[Annotated]:
        return chain.from_iterable(self.parts())

    def parts(self) -> Iterator[list[Annotated]]:
        for file in self.files:
            yield [Annotated(**row) for _, row in json_lines(file)]

    def docs(self) -> Iterator[tuple[Annotated, "Doc"]]:
        """The documents as spaCy's, with the words and the sentences that the tasks read."""
        import spacy
        from spacy.tokens import Doc
        from spacy.util import get_words_and_spaces

        vocab = spacy.blank(self.language).vocab
        for document in self:
            (text,) = document.texts
            sentences = located_sentences(text, self.language)
            located_words = chain.from_iterable(sentences)
            words, spaces = get_words_and_spaces(list(_texts_of(text, located_words)), text)
            doc = Doc(vocab, words=words, spaces=spaces)
            starts = {sentence[0].start for sentence in sentences}
            for token in doc:
                token.is_sent_start = token.idx in starts
            yield document, doc


def _texts_of(text: str, words: Iterable["Word"]) -> Iterator[str]:
    """
    The texts of words as they are written. A character that NFC divides into two words belongs to
    the first one.
    """
    end = 0
    for word in words:
        if word.end > end:
            yield text[max(word.start, end) : word.end]
            end = word.end
