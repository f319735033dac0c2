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

__all__ = ["columns_of", "conllu_sentences", "corpus_words", "format_by_suffix", "format_of"]
__all__ += ["line_blocks", "lines_in", "text_sentences", "warn_if_untokenised"]
__all__ += ["without_boundaries"]

logger = logging.getLogger(__name__)

_Line = TypeVar("_Line", bound=str | list[str])

# Of a file, `format_of` reads only so many bytes.
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
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **{f".{name}": name for name in ("json", "csv", "tsv", "xlsx", "parquet")},
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xml", ".tei", ".srt", ".vtt"), "markup"),
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
    binary = (name for first, name in _FIRST_BYTES.items() if start.startswith(first))
    if (found := next(binary, "a tar archive" if start[257:262] == b"ustar" else None)) is not None:
        return found
    by_suffix = format_by_suffix(path)
    if by_suffix is not None:
        return by_suffix
    text = decoded(start).replace("\r\n", "\n").replace("\r", "\n").lstrip()
    # A text may have a few.
    if 4 * text.count("\0") > len(text):
        return "binary data"
    # The last line may be cut.
    lines = text.split("\n")[: -1 if len(start) == _START else None]
    known = (name for name, pattern in _BEGINNINGS.items() if re.match(pattern, text))
    return next(known, None) or _columns_in(
        [line for line in lines if line.strip() and line[0] != "#"]
    )


def format_by_suffix(path: str | PathLike[str]) -> str | None:
    """The format of which a file has the suffix, before the one of a compressed file."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def _format_of_zip(file: Any) -> str:
    try:
        members = set(zipfile.ZipFile(file).namelist())
    except (zipfile.BadZipFile, ValueError, OSError):
        members = set()
    return next((name for member, name in _MEMBERS.items() if member in members), "a zip archive")


def _columns_in(rows: list[str]) -> str:
    """Whether lines have columns: numbered, as many tabs in each line, or a tag at each end."""
    if rows and re.match(r"\d[\d.-]*\t", rows[0]):
        return "CoNLL-U" if rows[0].count("\t") == 9 else "numbered columns"
    n_tabs = {row.count("\t") for row in rows}
    have_tags = len(rows) > 2 and all(
        len(row) > 1 and _TAG.fullmatch(row[-1]) for row in map(columns_of, rows)
    )
    return (
        "columns" if have_tags or (len(rows) > 1 and len(n_tabs) == 1 and n_tabs != {0}) else "text"
    )


def lines_in(
    path: str | PathLike[str], wanted: str, *formats: str, hint: str = "convert it first"
) -> Iterator[tuple[int, str]]:
    """`numbered_lines` of a text, or of a file in one of `formats`."""
    if (found := format_of(path)) not in {"text", *formats}:
        raise ValueError(f"expected {wanted}, got {found} ({hint}): {path}")
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
        for number, words in conllu_sentences(path):
            yield number, [word["form"] for word in words]
    elif letters:
        yield from _letters(
            lines_in(path, "one sequence of letters per line", "FASTA", hint=_TEXTS)
        )
    else:
        for number, line in (
            numbered_lines(path)
            if is_text
            else lines_in(path, "one sentence per line", hint=_TEXTS)
        ):
            with located(path, number):
                yield number, without_boundaries(line)


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
    known = as_words(words)
    if len(known) > 1 and set(known) in ({"_"}, {"[WORD]"}):
        masked = f"{known[0]!r} for each"
        raise ValueError(f"expected words, got {masked}: add the text of the corpus first")
    return known


def _letters(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    first = 0
    record: list[str] | None = None
    for number, line in lines:
        letters = [letter for letter in line if not letter.isspace()]
        if line.startswith(">"):
            if record is not None:
                yield first, record
            first, record = number, []
        elif record is None:
            yield number, letters
        else:
            record += letters
    if record is not None:
        yield first, record


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
    for block in line_blocks(
        lines_in(path, "CoNLL-U", "CoNLL-U", "numbered columns", "columns", "tsv")
    ):
        number = block[0][0]
        with located(path, number):
            for sentence in conllu.parse(
                "\n".join(line for _, line in block), field_parsers=unparsed
            ):
                words = [word for word in sentence if isinstance(word["id"], int)]
                if words:
                    corpus_words(word["form"] for word in words)
                    yield number, words


def line_blocks(
    lines: Iterable[tuple[int, str]],
    is_break: Callable[[str], bool] = lambda line: not line.strip(),
) -> Iterator[list[tuple[int, str]]]:
    """Consecutive lines that are not breaks, each with its number."""
    for is_between, block in groupby(lines, lambda numbered: is_break(numbered[1])):
        if not is_between:
            yield list(block)


def columns_of(line: str) -> list[str]:
    """
    The columns of a line. Only spaces and tabs separate them, because a word may contain a no-break
    space.
    """
    return [column for column in line.replace("\t", " ").split(" ") if column]


def warn_if_untokenised(lines: Iterable[_Line], source: object) -> Iterator[_Line]:
    """
    The same lines, which a command splits at white space, or lists of words. If more than one in
    five of the first thousand lines ends in a word with a full stop, one warning is logged:
    `closed.` would be a different word.
    """
    lines = iter(lines)
    first = list(islice(lines, 1000))
    words = [line.split()[-1] for line in first if isinstance(line, str) and line.strip()]
    attached = [word for word in words if word.endswith(".") and word.strip(".")]
    if 5 * len(attached) > len(words):
        _warn_of_untokenised(str(source), attached[0])
    return chain(first, lines)


@cache
def _warn_of_untokenised(source: str, word: str) -> None:
    hint = "tokenise it first: `python -m elmo_tasks embed` has --tokenize en (or de, ...) for spaCy's rules"
    logger.warning(
        "%s does not look tokenised: %r, at the end of a line, is one word; %s", source, word, hint
    )
