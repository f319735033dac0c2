"""Texts of an index: sentences, with lemmas and parts of speech where the files have them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from elmo_tasks.data import LmText
from elmo_tasks.data.dataset_readers.pos_reader import conllu_sentences
from elmo_tasks.data.lm_text import text_files
from elmo_tasks.files.text_lines import byte_lines
from elmo_tasks.unicode_text import in_nfc

__all__ = ["TAGS", "TaggedSentence", "read_text"]

TAGS = ("lemma", "pos")
"""What each word of a text may have, by the names of the fields of `TaggedSentence`."""

_ENDINGS = tuple(f".conllu{compressed}" for compressed in ("", ".gz", ".xz", ".bz2"))
# Lines of a text, for whether they are CoNLL-U.
_LOOKED_AT = 500


class TaggedSentence(NamedTuple):
    """A sentence, and of each word its lemma and its universal part of speech."""

    words: list[str]
    lemma: list[str]
    pos: list[str]


def read_text(corpus: str, *, nfc: bool = False) -> Iterable[Sequence[str] | TaggedSentence]:
    """
    # Parameters

    corpus
        Tokenised text, as `LmText` reads it; or files of CoNLL-U, whose names end with `.conllu`, and `.gz`, `.xz` or
        `.bz2` after that, in any case.
    nfc
        Whether the text is put into Unicode's form NFC.

    # Returns

    `Iterable[Union[Sequence[str], TaggedSentence]]`
        Sentences; of CoNLL-U tagged ones, with `_` for white space in a form or a lemma.

    # Raises

    `ConfigurationError`
        If there is no such file.
    `ValueError`
        If some of the files are CoNLL-U and some are not, or one is CoNLL-U by its lines and not by its name; and
        while reading, see `LmText` and `conllu_sentences`.
    """
    files = text_files(corpus)
    others = [file for file in files if not file.lower().endswith(_ENDINGS)]
    if len(others) == len(files):
        for file in files:
            _check_text(file)
        return LmText(corpus, nfc=nfc)
    if others:
        raise ValueError(
            f"the files of a text must all be CoNLL-U, or none, but in {corpus!r} there are {others[0]!r} and "
            f"{next(file for file in files if file not in others)!r}: name them one by one, or with a pattern"
        )
    return _tagged(files, nfc)


def _check_text(file: str) -> None:
    for number, line in islice(byte_lines(file), _LOOKED_AT):
        if line.startswith(b"1\t") and line.count(b"\t") == 9:
            raise ValueError(
                f"{file}, line {number}: a text must have words with white space between them, but this looks like "
                "CoNLL-U: give the file a name that ends with .conllu"
            )


def _tagged(files: Sequence[str], nfc: bool) -> Iterator[TaggedSentence]:
    for file in files:
        for _, sentence in conllu_sentences(file):
            columns = [[_joined(word[column]) for word in sentence] for column in ("form", "lemma", "upos")]
            yield TaggedSentence(*(in_nfc(columns) if nfc else columns))


def _joined(text: str) -> str:
    return "_".join(text.split()) or "_"
