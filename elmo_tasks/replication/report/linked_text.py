"""Text of a cell that says which runs it is of."""

from typing import Self

__all__ = ["LinkedText"]


class LinkedText(str):
    """
    A text, and the runs that its numbers are of.

    # Parameters

    text
        The text.
    of
        Task and variant.
    """

    of: tuple[str, str] | None

    def __new__(cls, text: str, of: tuple[str, str] | None = None) -> Self:
        # Copies, as those of `dataclasses.asdict`, are made from the text alone, and get the rest after.
        made = super().__new__(cls, text)
        made.of = of
        return made
