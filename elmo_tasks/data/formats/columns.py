"""Columns of the formats of CoNLL."""

__all__ = ["check_count", "columns_of", "word_of"]


def columns_of(line: str) -> list[str]:
    """The columns of a line, between spaces and tabs. Only these separate them: a word may have a no-break space."""
    return [column for column in line.replace("\t", " ").split(" ") if column]


def word_of(column: str) -> str:
    """A word of CoNLL-2012. OntoNotes has some full stops and question marks of conversations with a slash."""
    return column[1:] if column in ("/.", "/?") else column


def check_count(former: str, number: str, where: str = "") -> None:
    """
    Numbers of two words of CoNLL-2012, one after the other in a sentence.

    # Raises

    `ValueError`
        If they are numbers, and the second is below the first, as where the empty line between sentences is lost.
    """
    if former.isdecimal() and number.isdecimal() and int(number) < int(former):
        raise ValueError(
            f"{where}the numbers of the words of a sentence, in the third column, must not fall, but {number} comes "
            f"after {former}: put an empty line between two sentences"
        )
