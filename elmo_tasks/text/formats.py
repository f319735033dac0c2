"""Sentences from files: lines of text, CoNLL-U, FASTA and columns. A file in a different format is an error."""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, groupby, islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from elmo_tasks.extras import needs
from elmo_tasks.text.lines import located, numbered_lines
from elmo_tasks.text.words import BOUNDARIES, as_words

__all__ = ["columns_of", "conllu_sentences", "corpus_words", "line_blocks", "lines_in", "text_sentences"]
__all__ += ["warn_if_untokenised"]

logger = logging.getLogger(__name__)

_Line = TypeVar("_Line", bound=str | list[str])

# How a file in each format begins; the last four are recognised by their columns or their names.
_FORMATS = {
    "JSON": r'\{\s*("|$)|\[\s*([{"]|$)|\[\[',
    "FASTA": r">\S.*\n[A-Za-z*-]+$",
    "markup": r"<([?!]|/?(html|body|doc|text|s|p)\b|[^<>\n]+=[^<>\n]*>)",
    "trees": r"\(\S* ?\(\S+ \S",
    "CoNLL-2012": r"#begin document",
    # Two words, or one with the ten columns of CoNLL-U.
    "numbered columns": r"(#.*\n)*(1(-\d+)?\t.*\n[12]\t|\d[\d.-]*(\t[^\t\n]+){9}$)",
    "WebAnno TSV": r"#FORMAT=WebAnno|(#.*\n)*\d+-\d+\t\d+-\d+\t",
    "words with language codes": r"([a-z-]{2,}):\S+\t\S+(\n\1:.*){4}",
    "words with tags": r"-DOCSTART-",
    "a table": r"(?!)",
    "an archive": r"(?!)",
}
# Formats that are recognised by a suffix. The columns of CSV cannot be told from the commas of a text.
_SUFFIXES = {".csv": "a table", ".tar": "an archive", ".tgz": "an archive", ".zip": "an archive"}
# What each command can do with a file in a different format. The readers of the tasks share a row.
_REMEDIES = {
    "annotate": {
        "JSON": "--input-format jsonl reads JSON lines",
        "a table": "--input-format tsv or csv reads it by its header",
        "": "extract the texts first; --input-format text reads each line as a text",
    },
    "text": {
        "FASTA": "`--tokenize letters` reads it",
        "numbered columns": "a file that ends with .conllu is read as CoNLL-U",
        "a table": "write the column of its texts to a file: `cut -f1` keeps the first",
        "": "extract the text first",
    },
    "tasks": {
        "JSON": "`allennlp predict` reads JSON lines, without --use-dataset-reader",
        "trees": "the reader elmo_sst reads them",
        "CoNLL-2012": "the readers elmo_srl and elmo_coref read it",
        "numbered columns": "`cut -f2,3` keeps the words and tags of GermEval",
        "WebAnno TSV": "export it from WebAnno or INCEpTION as CoNLL 2002, which the reader elmo_ner reads",
        "words with language codes": "`sed 's/^[a-z-]*://'` removes the codes",
        "words with tags": "the reader elmo_ner reads them",
        "": "convert it first",
    },
}
# The remedy for any other format, by what is wanted. OntoGUM's, for example, has no sentences.
_REMEDIES_OF = {
    "CoNLL-2012": "write its words in the columns of docs/tasks/coref.md, an empty line after each sentence"
}
_REMEDIES["embed"] = _REMEDIES["text"] | {"": "extract the text first; --input-format text reads it as it is"}
_TAG = re.compile(r"[-_*O]|[BIELSU]-\S+|\S*\*\)*")


def lines_in(
    path: str | PathLike[str], wanted: str, *formats: str, command: str = "tasks"
) -> Iterator[tuple[int, str]]:
    """`numbered_lines` of a file that does not look like any of `_FORMATS`, or like one of `formats`."""
    named = [_SUFFIXES[suffix.lower()] for suffix in Path(path).suffixes if suffix.lower() in _SUFFIXES]
    lines = numbered_lines(path)
    first = [] if named else list(islice(lines, 50))
    found = named[0] if named else _format_of([line for _, line in first if line.strip()])
    if found is not None and found not in formats:
        remedies = {"an archive": "unpack it first"} | _REMEDIES[command]
        remedy = _REMEDIES_OF.get(wanted, remedies.get(found, remedies[""]))
        raise ValueError(f"expected {wanted}, got what looks like {found} ({remedy}): {path}")
    return chain(first, lines)


def _format_of(rows: list[str]) -> str | None:
    text = "\n".join(rows)
    for name, pattern in _FORMATS.items():
        if re.match(pattern, text, re.MULTILINE) and (name != "JSON" or _is_json(rows)):
            return name
    cells = list(map(columns_of, rows))
    if len(rows) > 2 and all(len(row) > 1 and _TAG.fullmatch(row[-1]) for row in cells):
        return "words with tags"
    n_tabs = {row.count("\t") for row in rows}
    return "a table" if len(rows) > 1 and len(n_tabs) == 1 and n_tabs != {0} else None


def _is_json(rows: list[str]) -> bool:
    """Whether the first line is JSON, or begins a value that continues in the next line."""
    try:
        json.loads(rows[0])
    except json.JSONDecodeError as error:
        return error.pos >= len(rows[0].rstrip())
    return True


def text_sentences(
    path: str | PathLike[str], *, letters: bool = False, is_text: bool = False, command: str = "text"
) -> Iterator[tuple[int, str | list[str]]]:
    """
    The sentences of a text, each with the number of its first line: the lines of a file; the words of each sentence of
    CoNLL-U, if the name has the suffix `.conllu`; or the `letters` of each line, or of each record in FASTA. A file
    that looks like a different format is an error, except with `is_text`.
    """
    if ".conllu" in Path(path).suffixes and not is_text:
        for number, words in conllu_sentences(path):
            with located(path, number):
                yield number, corpus_words([word["form"] for word in words])
    elif letters:
        yield from _letters(lines_in(path, "one sequence of letters per line", "FASTA", command=command))
    else:
        lines = numbered_lines(path) if is_text else lines_in(path, "one sentence per line", command=command)
        for number, line in lines:
            # The biLM adds the boundaries, so it would read two of each.
            if "S>" in line and not BOUNDARIES.isdisjoint(line.split()):
                raise ValueError(f"expected text without <S> and </S>, got {line[:60]!r}: {path}, line {number}")
            yield number, line


def corpus_words(words: Iterable[Any]) -> list[str]:
    """`as_words`, and an error if the corpus is published without its words, as CoNLL-2012 and some treebanks."""
    found = as_words(words)
    if len(found) > 1 and set(found) in ({"_"}, {"[WORD]"}):
        raise ValueError(f"expected words, got {found[0]!r} for each: add the text of the corpus first")
    return found


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
    with needs("allennlp"):
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
