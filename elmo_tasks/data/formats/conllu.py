"""Sentences of CoNLL-U, the format of Universal Dependencies."""

import re
from collections.abc import Iterator

from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["conllu_sentences"]

_N_COLUMNS = 10
# A word; a token that stands for several words (`2-3  don't`), or an empty node (`5.1`).
_WORD, _OTHER = re.compile(r"[1-9]\d*"), re.compile(r"[1-9]\d*-[1-9]\d*|\d+\.[1-9]\d*")


def conllu_sentences(path: str) -> Iterator[tuple[str, list[tuple[int, list[str]]]]]:
    """
    # Parameters

    path
        A file in UTF-8, plain or compressed.

    # Returns

    `Iterator[Tuple[str, List[Tuple[int, List[str]]]]]`
        Of each sentence its place, as an error names it, and of each of its words the number of the line and the ten
        columns. Multiword tokens and empty nodes are skipped.

    # Raises

    `ValueError`
        If a line is not CoNLL-U, with file and line; see `numbered_lines`.
    """
    rows: list[tuple[int, list[str]]] = []
    for number, line in numbered_lines(path):
        if not line.strip():
            if rows:
                yield f"{path}, line {rows[0][0]}", rows
                rows = []
        elif not line.startswith("#"):
            columns = line.split("\t")
            _check(columns, len(rows) + 1, f"{path}, line {number}")
            if _WORD.fullmatch(columns[0]):
                rows.append((number, columns))
    if rows:
        yield f"{path}, line {rows[0][0]}", rows


def _check(columns: list[str], next_word: int, where: str) -> None:
    if len(columns) != _N_COLUMNS:
        raise ValueError(
            f"{where}: a line of CoNLL-U must have {_N_COLUMNS} columns with tabs between them, but this one has "
            f"{len(columns)}: {columns[0]!r:.60}"
        )
    if _OTHER.fullmatch(columns[0]):
        return
    if columns[0] != str(next_word):
        raise ValueError(
            f"{where}: the words of a sentence must be counted from 1 (with ranges like 2-3 for multiword tokens, "
            f"and 2.1 for empty nodes), so that {next_word} comes here, but here is {columns[0]!r}: an empty line "
            "separates sentences"
        )
    if not columns[1].strip():
        raise ValueError(f"{where}: a word must have a form in the second column, but that is empty")
