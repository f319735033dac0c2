"""A table with its caption."""

from dataclasses import dataclass

__all__ = ["Table"]


@dataclass(frozen=True)
class Table:
    """
    # Parameters

    title : `str`
        What it is.
    columns : `List[str]`
        Their names.
    rows : `List[List[str]]`
        As many cells as there are columns.
    caption : `List[str]`
        Sentences.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    caption: list[str]
