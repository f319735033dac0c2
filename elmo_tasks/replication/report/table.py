"""A table with its caption."""

from dataclasses import dataclass, field

__all__ = ["Table"]


@dataclass(frozen=True)
class Table:
    """
    # Parameters

    title
        The heading.
    columns
        Their names.
    rows
        As many cells as there are columns.
    caption
        Sentences that are needed to read it.
    runs
        Sentences on how the numbers were made: versions, commits, machines.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    caption: list[str]
    runs: list[str] = field(default_factory=list)
