"""Columns of the formats of CoNLL."""

__all__ = ["columns_of"]


def columns_of(line: str) -> list[str]:
    """The columns of a line, between spaces and tabs. Only these separate them: a word may have a no-break space."""
    return [column for column in line.replace("\t", " ").split(" ") if column]
