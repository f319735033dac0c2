"""Sentences of CoNLL-U, the format of Universal Dependencies."""

import re
from collections.abc import Iterator
from itertools import chain

from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["N_COLUMNS", "conllu_sentences"]

N_COLUMNS = 10
"""Of each line of a word."""

# A word; a token that stands for several words (`2-3  don't`); an empty node (`5.1`).
_WORD, _RANGE, _NODE = (re.compile(form) for form in (r"[1-9]\d*", r"([1-9]\d*)-([1-9]\d*)", r"\d+\.[1-9]\d*"))


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
    # The last word of the last range, and where that is.
    last, range_at = 0, path
    for number, line in chain(numbered_lines(path), [(0, "")]):
        if not line.strip():
            if last > len(rows):
                raise ValueError(
                    f"{range_at}: the words of a multiword token must follow it, but its last one is {last}, and the "
                    f"sentence has {len(rows)}: is the file complete?"
                )
            if rows:
                yield f"{path}, line {rows[0][0]}", rows
            rows, last = [], 0
        elif not line.startswith("#"):
            columns, where = line.split("\t"), f"{path}, line {number}"
            _check(columns, len(rows) + 1, where)
            if found := _RANGE.fullmatch(columns[0]):
                if last > len(rows):
                    raise ValueError(
                        f"{where}: a multiword token must follow the words of the one before, whose last one is "
                        f"{last}, but is {columns[0]!r}"
                    )
                last, range_at = int(found[2]), where
            elif _WORD.fullmatch(columns[0]):
                rows.append((number, columns))


def _check(columns: list[str], next_word: int, where: str) -> None:
    if len(columns) != N_COLUMNS:
        raise ValueError(
            f"{where}: a line of CoNLL-U must have {N_COLUMNS} columns with tabs between them, but this one has "
            f"{len(columns)}: {columns[0]!r:.60}"
        )
    if _NODE.fullmatch(columns[0]):
        return
    if found := _RANGE.fullmatch(columns[0]):
        first, last = map(int, found.groups())
        if first != next_word or last <= first:
            raise ValueError(
                f"{where}: a multiword token must stand before its first word, which is {next_word} here, and have two "
                f"words at least, but is {columns[0]!r}"
            )
        return
    if columns[0] != str(next_word):
        raise ValueError(
            f"{where}: the words of a sentence must be counted from 1 (with ranges like 2-3 for multiword tokens, "
            f"and 2.1 for empty nodes), so that {next_word} comes here, but here is {columns[0]!r}: an empty line "
            "separates sentences"
        )
    if not columns[1].strip():
        raise ValueError(f"{where}: a word must have a form in the second column, but that is empty")
