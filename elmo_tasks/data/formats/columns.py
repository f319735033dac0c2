"""Columns of the formats of CoNLL."""

from collections.abc import Sequence

__all__ = ["check_count", "columns_of", "word_of"]


def columns_of(line: str) -> list[str]:
    """The columns of a line, between spaces and tabs. Only these separate them: a word may have a no-break space."""
    return [column for column in line.replace("\t", " ").split(" ") if column]


def word_of(column: str) -> str:
    """A word of CoNLL-2012. OntoNotes has some full stops and question marks of conversations with a slash."""
    return column[1:] if column in ("/.", "/?") else column


def check_count(formers: Sequence[str], number: str, where: str = "") -> None:
    """
    The numbers of the words of a sentence of CoNLL-2012: those of the words before, of which the last two tell, and the
    next one.

    # Raises

    `ValueError`
        If they are numbers, and neither rise nor are all the same, as where the empty line between sentences is lost.
    """
    *others, former = formers[-2:]
    if not all(column.isdecimal() for column in (*others, former, number)):
        return
    rises = int(number) > int(former)
    if int(number) < int(former) or any((int(former) > int(other)) != rises for other in others):
        raise ValueError(
            f"{where}the numbers of the words of a sentence, in the third column, must rise, but {number} comes after "
            f"{' and '.join((*others, former))}: put an empty line between two sentences"
        )
