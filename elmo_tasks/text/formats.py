"""Sentences from files: lines of text, CoNLL-U, FASTA and columns. A file in a different format is an error."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, groupby, islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from elmo_tasks.text.lines import located, numbered_lines
from elmo_tasks.text.words import BOUNDARIES, as_words

__all__ = ["columns_of", "conllu_sentences", "line_blocks", "lines_in", "published", "text_sentences"]
__all__ += ["warn_if_untokenised"]

logger = logging.getLogger(__name__)

_Line = TypeVar("_Line", bound=str | list[str])

# How a file in each format begins, and what to do with it. The last two are recognised by their columns.
_FORMATS = {
    "JSON": (r'\{\s*("|$)|\[\s*([{"]|$)|\[\[', "`allennlp predict` reads JSON lines, without --use-dataset-reader"),
    "FASTA": (r">\S.*\n[A-Za-z*-]+$", "`--tokenize letters` reads it"),
    "markup": (r"<([?!]|/?(html|body|doc|text|s|p)\b|[^<>\n]+=[^<>\n]*>)", "extract the text first"),
    "trees": (r"\(\S* ?\(\S+ \S", "the reader elmo_sst reads them"),
    "CoNLL-2012": (r"#begin document", "the readers elmo_srl and elmo_coref read it"),
    "numbered columns": (
        # Two words, or one with the ten columns of CoNLL-U.
        r"(#.*\n)*(1(-\d+)?\t.*\n[12]\t|\d[\d.-]*(\t[^\t\n]+){9}$)",
        "text is read from CoNLL-U if the name ends with .conllu; `cut -f2,3` keeps the words and tags of GermEval",
    ),
    "WebAnno TSV": (
        r"#FORMAT=WebAnno|(#.*\n)*\d+-\d+\t\d+-\d+\t",
        "export it from WebAnno or INCEpTION as CoNLL 2002, which the reader elmo_ner reads",
    ),
    "words with language codes": (r"([a-z-]{2,}):\S+\t\S+(\n\1:.*){4}", "`sed 's/^[a-z-]*://'` removes the codes"),
    "words with tags": (r"-DOCSTART-", "the reader elmo_ner reads them"),
    "a table": (r"(?!)", "write the column of its texts to a file: `cut -f1` keeps the first"),
}
# What to do with a file in any other format, by what is wanted. OntoGUM's, for example, has no sentences.
_HINTS = {"CoNLL-2012": "write its words in the columns of docs/tasks/coref.md, an empty line after each sentence"}
_TAG = re.compile(r"[-_*O]|[BIELSU]-\S+|\S*\*\)*")


def lines_in(path: str | PathLike[str], wanted: str, *formats: str) -> Iterator[tuple[int, str]]:
    """`numbered_lines` of a file that does not look like any of `_FORMATS`, or like one of `formats`."""
    lines = numbered_lines(path)
    first = list(islice(lines, 50))
    # The columns of CSV cannot be told from the commas of a text.
    is_csv = ".csv" in Path(path).suffixes
    found = "a table" if is_csv else _format_of([line for _, line in first if line.strip()])
    if found is not None and found not in formats:
        hint = _HINTS.get(wanted, _FORMATS[found][1])
        raise ValueError(f"expected {wanted}, got what looks like {found} ({hint}): {path}")
    return chain(first, lines)


def _format_of(rows: list[str]) -> str | None:
    for name, (pattern, _) in _FORMATS.items():
        if re.match(pattern, "\n".join(rows), re.MULTILINE):
            return name
    cells = list(map(columns_of, rows))
    if len(rows) > 2 and all(len(row) > 1 and _TAG.fullmatch(row[-1]) for row in cells):
        return "words with tags"
    n_tabs = {row.count("\t") for row in rows}
    return "a table" if len(rows) > 1 and len(n_tabs) == 1 and n_tabs != {0} else None


def text_sentences(path: str | PathLike[str], *, letters: bool = False) -> Iterator[tuple[int, str | list[str]]]:
    """
    The sentences of a text, each with the number of its first line: the lines of a file; the words of each sentence of
    CoNLL-U, if the name has the suffix `.conllu`; or the `letters` of each line, or of each record in FASTA.
    """
    if ".conllu" in Path(path).suffixes:
        for number, words in conllu_sentences(path):
            with located(path, number):
                yield number, published(as_words([word["form"] for word in words]))
    elif letters:
        yield from _letters(lines_in(path, "one sequence of letters per line", "FASTA"))
    else:
        for number, line in lines_in(path, "one sentence per line"):
            # The biLM adds the boundaries, so it would read two of each.
            if "S>" in line and not BOUNDARIES.isdisjoint(line.split()):
                raise ValueError(f"expected text without <S> and </S>, got {line[:60]!r}: {path}, line {number}")
            yield number, line


def published(words: list[str]) -> list[str]:
    """The words of a sentence. An error if the corpus is published without them, as CoNLL-2012 and some treebanks."""
    if len(words) > 1 and set(words) in ({"_"}, {"[WORD]"}):
        raise ValueError(f"expected words, got {words[0]!r} for each: add the text of the corpus first")
    return words


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
    The sentences of a CoNLL-U file, each with the number of its first line, and the ten columns of each word
    by name. Multiword tokens and empty nodes are skipped.
    """
    import conllu

    # Columns that are kept as text, because parsing them would take half of the time.
    unparsed = dict.fromkeys(("feats", "head", "deprel", "deps", "misc"), lambda line, column: line[column])
    for block in line_blocks(lines_in(path, "CoNLL-U", "numbered columns", "words with tags", "a table")):
        number = block[0][0]
        with located(path, number):
            for sentence in conllu.parse("\n".join(line for _, line in block), field_parsers=unparsed):
                words = [word for word in sentence if isinstance(word["id"], int)]
                if words:
                    yield number, words


def line_blocks(
    lines: Iterable[tuple[int, str]], is_break: Callable[[str], bool] = lambda line: not line.strip()
) -> Iterator[list[tuple[int, str]]]:
    """Consecutive lines that are not breaks, each with its number."""
    for is_between, block in groupby(lines, lambda numbered: is_break(numbered[1])):
        if not is_between:
            yield list(block)


def columns_of(line: str) -> list[str]:
    """The columns of a line. Only spaces and tabs separate them, because a word may contain a no-break space."""
    return [column for column in line.replace("\t", " ").split(" ") if column]


def warn_if_untokenised(lines: Iterable[_Line], source: object) -> Iterator[_Line]:
    """
    The same lines, which a command splits at white space, or lists of words. If more than one in five of the first
    thousand lines ends in a word with a full stop, one warning is logged: `closed.` would be a different word.
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
    logger.warning("%s does not look tokenised: %r, at the end of a line, is one word; %s", source, word, hint)
