"""What a file is, and the sentences in files: lines of text, CoNLL-U, FASTA and columns."""

import logging
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, groupby, islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from elmo_tasks.files.extras import needs
from elmo_tasks.files.lines import COMPRESSED, decoded, located, numbered_lines, opened
from elmo_tasks.text.words import BOUNDARIES, as_words

__all__ = [
    "columns_of",
    "conllu_sentences",
    "corpus_words",
    "format_by_suffix",
    "format_of",
    "line_blocks",
    "lines_in",
    "text_sentences",
    "warn_if_untokenised",
    "without_boundaries",
]

logger = logging.getLogger(__name__)

_LineOrWords = TypeVar("_LineOrWords", bound=str | list[str])

# The number of bytes that `format_of` reads.
_START = 4096
_FIRST_BYTES = {
    b"PAR1": "parquet",
    b"%PDF-": "PDF",
    b"\x89HDF\r\n\x1a\n": "HDF5",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\x1f\x8b": "gzip without the suffix .gz",
    b"BZh91AY&SY": "bzip2 without the suffix .bz2",
    b"\xfd7zXZ\0": "xz without the suffix .xz",
}
# A file in a zip archive, and what has it.
_MEMBERS = {
    "xl/workbook.xml": "xlsx",
    "word/document.xml": "Word (.docx)",
    "content.xml": "OpenDocument",
}
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".xlsx": "xlsx",
    ".parquet": "parquet",
    ".html": "markup",
    ".htm": "markup",
    ".xhtml": "markup",
    ".xml": "markup",
    ".tei": "markup",
    ".srt": "markup",
    ".vtt": "markup",
    ".conllu": "CoNLL-U",
    ".ann": "annotations of brat",
    ".spacy": "documents of spaCy",
}
# How a text in each format begins, after white space.
_BEGINNINGS = {
    "json": r'\{\s*"([^"\\\n]|\\.)*"\s*:|\{\s*\}\s*\{|\[\s*([\[{]\s*)?"',
    "markup": r"<([?!]|/?(html|body|doc|text|s|p)\b|[^<>\n]+=[^<>\n]*>)|\{\\rtf",
    "FASTA": r">\S.*\n[A-Za-z*-]+\s",
    "CoNLL-2012": r"#begin document",
    "CoNLL-2003": r"-DOCSTART-",
}
_TEXTS = "write its texts to a file, one per line"
_TAG = re.compile(r"[-_*O]|[BIELSU]-\S+|\S*\*\)*")


def format_of(path: str | PathLike[str]) -> str:
    """
    What a file is: `"text"`, or a name in the tables above. The first bytes of binary files decide,
    then the suffix, then how a text begins.
    """
    # A pipe can be read only once.
    if not Path(path).is_file():
        return "text"
    with opened(path) as file:
        start = file.read(_START)
        if start.startswith(b"PK\x03\x04"):
            return _format_of_zip(file)
    return _binary_format(start) or format_by_suffix(path) or _text_format(start)


def format_by_suffix(path: str | PathLike[str]) -> str | None:
    """The format of which a file has the suffix, before the one of a compressed file."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    if not suffixes:
        return None
    return _SUFFIXES.get(suffixes[-1])


def _format_of_zip(file: Any) -> str:
    try:
        members = set(zipfile.ZipFile(file).namelist())
    except (zipfile.BadZipFile, ValueError, OSError):
        members = set()
    for member, name in _MEMBERS.items():
        if member in members:
            return name
    return "a zip archive"


def _binary_format(start: bytes) -> str | None:
    for first_bytes, name in _FIRST_BYTES.items():
        if start.startswith(first_bytes):
            return name
    if start[257:262] == b"ustar":
        return "a tar archive"
    return None


def _text_format(start: bytes) -> str:
    """The format of a file by its first `_START` bytes."""
    text = decoded(start).replace("\r\n", "\n").replace("\r", "\n").lstrip()
    # A text may have a few.
    if 4 * text.count("\0") > len(text):
        return "binary data"
    for name, pattern in _BEGINNINGS.items():
        if re.match(pattern, text):
            return name
    lines = text.split("\n")
    if len(start) == _START:
        # The last line may be cut.
        lines.pop()
    return _format_of_lines([line for line in lines if line.strip() and line[0] != "#"])


def _format_of_lines(lines: list[str]) -> str:
    """Columns are numbered, or each line has as many tabs, or a tag at its end."""
    if lines and re.match(r"\d[\d.-]*\t", lines[0]):
        return "CoNLL-U" if lines[0].count("\t") == 9 else "numbered columns"
    n_tabs = {line.count("\t") for line in lines}
    if len(lines) > 1 and len(n_tabs) == 1 and n_tabs != {0}:
        return "columns"
    if len(lines) > 2 and all(map(_ends_with_tag, lines)):
        return "columns"
    return "text"


def _ends_with_tag(line: str) -> bool:
    columns = columns_of(line)
    return len(columns) > 1 and _TAG.fullmatch(columns[-1]) is not None


def lines_in(
    path: str | PathLike[str], wanted: str, *formats: str, hint: str = "convert it first"
) -> Iterator[tuple[int, str]]:
    """`numbered_lines` of a text, or of a file in one of `formats`."""
    file_format = format_of(path)
    if file_format != "text" and file_format not in formats:
        raise ValueError(f"expected {wanted}, got {file_format} ({hint}): {path}")
    return numbered_lines(path)


def text_sentences(
    path: str | PathLike[str], *, letters: bool = False, is_text: bool = False
) -> Iterator[tuple[int, str | list[str]]]:
    """
    The sentences of a text, each with the number of its first line: the lines of a file; the words
    of each sentence of CoNLL-U; or the `letters` of each line, or of each record in FASTA. A file
    in a different format is an error, except with `is_text`.
    """
    if not is_text and format_of(path) == "CoNLL-U":
        yield from _conllu_forms(path)
    elif letters:
        lines = lines_in(path, "one sequence of letters per line", "FASTA", hint=_TEXTS)
        yield from _letters(lines)
    else:
        if is_text:
            lines = numbered_lines(path)
        else:
            lines = lines_in(path, "one sentence per line", hint=_TEXTS)
        for number, line in lines:
            with located(path, number):
                yield number, without_boundaries(line)


def _conllu_forms(path: str | PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    for number, words in conllu_sentences(path):
        yield number, [word["form"] for word in words]


def without_boundaries(line: str) -> str:
    """
    The same line, or an error if it has boundaries: the biLM adds them, so it would read two of
    each.
    """
    if "S>" in line and not BOUNDARIES.isdisjoint(line.split()):
        raise ValueError(f"expected text without <S> and </S>, got {line[:60]!r}")
    return line


def corpus_words(words: Iterable[Any]) -> list[str]:
    """
    `as_words` for a file of a corpus, and an error if the corpus is published without its words, as
    CoNLL-2012 and some treebanks.
    """
    checked = as_words(words)
    if len(checked) > 1 and set(checked) in ({"_"}, {"[WORD]"}):
        masked = f"{checked[0]!r} for each"
        raise ValueError(f"expected words, got {masked}: add the text of the corpus first")
    return checked


def _letters(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """
    The letters of each line, or of each record of FASTA, which begins with a line like `>name`.
    """
    record_number = 0
    record: list[str] | None = None
    for number, line in lines:
        if line.startswith(">"):
            if record is not None:
                yield record_number, record
            record_number = number
            record = []
            continue
        letters = [letter for letter in line if not letter.isspace()]
        if record is None:
            yield number, letters
        else:
            record += letters
    if record is not None:
        yield record_number, record


def conllu_sentences(path: str | PathLike[str]) -> Iterator[tuple[int, list[Any]]]:
    """
    The sentences of a CoNLL-U file, each with the number of its first line, and the ten columns of
    each word by name. Multiword tokens and empty nodes are skipped.
    """
    with needs("allennlp"):
        import conllu

    # Columns that are kept as text, because parsing them would take half of the time.
    unparsed = dict.fromkeys(
        ("feats", "head", "deprel", "deps", "misc"), lambda line, column: line[column]
    )
    lines = lines_in(path, "CoNLL-U", "CoNLL-U", "numbered columns", "columns", "tsv")
    for block in line_blocks(lines):
        number = block[0][0]
        text = "\n".join(line for _, line in block)
        with located(path, number):
            for sentence in conllu.parse(text, field_parsers=unparsed):
                words = [word for word in sentence if isinstance(word["id"], int)]
                if words:
                    corpus_words(word["form"] for word in words)
                    yield number, words


def _is_blank(line: str) -> bool:
    return not line.strip()


def line_blocks(
    lines: Iterable[tuple[int, str]],
    is_break: Callable[[str], bool] = _is_blank,
) -> Iterator[list[tuple[int, str]]]:
    """Consecutive lines that are not breaks, each with its number."""
    for is_between_blocks, block in groupby(lines, lambda numbered: is_break(numbered[1])):
        if not is_between_blocks:
            yield list(block)


def columns_of(line: str) -> list[str]:
    """
    The columns of a line. Only spaces and tabs separate them, because a word may contain a no-break
    space.
    """
    return [column for column in line.replace("\t", " ").split(" ") if column]


def warn_if_untokenised(lines: Iterable[_LineOrWords], source: object) -> Iterator[_LineOrWords]:
    """
    The same lines, which a command splits at white space, or lists of words. If more than one in
    five of the first thousand lines ends in a word with a full stop, one warning is logged:
    `closed.` would be a different word.
    """
    lines = iter(lines)
    thousand_lines = list(islice(lines, 1000))
    last_words = []
    for line in thousand_lines:
        if isinstance(line, str) and line.strip():
            last_words.append(line.split()[-1])
    attached = [word for word in last_words if word.endswith(".") and word.strip(".")]
    if 5 * len(attached) > len(last_words):
        _warn_of_untokenised(str(source), attached[0])
    return chain(thousand_lines, lines)


@cache
def _warn_of_untokenised(source: str, word: str) -> None:
    rules = "`python -m elmo_tasks embed` has --tokenize en (or de, ...) for spaCy's rules"
    logger.warning(
        "%s does not look tokenised: %r, at the end of a line, is one word; tokenise it first: %s",
        source,
        word,
        rules,
    )
