"""Lines of a text, and the parts that a job cuts them into."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["LinePart", "PartSummary", "TextSummary", "cut_into_parts", "parts_of", "summarize"]

# Of a part, for each of its lines: a part whose lines are whole documents has fewer of them.
_CHARACTERS_A_LINE = 200


@dataclass(frozen=True)
class PartSummary:
    """
    The lines of a part, without the lines.

    # Parameters

    first
        The index of its first line in the text, from 0.
    n_lines, n_words
        How many lines, and words between white space.
    digest
        Of the lines.
    """

    first: int
    n_lines: int
    n_words: int
    digest: str


@dataclass(frozen=True)
class LinePart:
    """
    Lines that are embedded together, and are done together or not at all.

    # Parameters

    number
        The index of the part, from 0.
    first
        The index of its first line in the text, from 0.
    lines
        The lines without their ends.
    """

    number: int
    first: int
    lines: list[str]

    def summary(self) -> PartSummary:
        """Tells these lines from all others."""
        digest = hashlib.blake2b(_as_bytes(self.lines), digest_size=16).hexdigest()
        return PartSummary(self.first, len(self.lines), sum(len(line.split()) for line in self.lines), digest)


@dataclass(frozen=True)
class TextSummary:
    """
    Numbers of a text before it is embedded.

    # Parameters

    n_lines
        Blank ones among them.
    parts
        Its parts in their order.
    digest
        Of all lines: equal for a file and its compressed copy.
    """

    n_lines: int
    parts: list[PartSummary]
    digest: str


def parts_of(path: Path, n_lines: int) -> Iterator[LinePart]:
    """The parts of a text, as `cut_into_parts` makes them; errors are those of `numbered_lines`."""
    return cut_into_parts((line for _, line in numbered_lines(path)), n_lines)


def cut_into_parts(lines: Iterable[str], n_lines: int) -> Iterator[LinePart]:
    """
    Parts of `n_lines` lines, or fewer where lines are long. They depend on the text and on `n_lines` alone, so that a
    resumed job has the same parts as the one before it.
    """
    number, first, n_characters = 0, 0, 0
    found: list[str] = []
    for line in lines:
        found.append(line)
        n_characters += len(line)
        if len(found) == n_lines or n_characters >= n_lines * _CHARACTERS_A_LINE:
            yield LinePart(number, first, found)
            number, first, n_characters, found = number + 1, first + len(found), 0, []
    if found:
        yield LinePart(number, first, found)


def summarize(path: Path, part_lines: int) -> TextSummary:
    """
    Reads a text once, so that its errors come before hours of work, and the time that is left can be estimated.

    # Raises

    `ValueError`
        If the text cannot be read, as in `numbered_lines`, or has no line.
    """
    digest = hashlib.blake2b(digest_size=16)
    parts = []
    for part in parts_of(path, part_lines):
        parts.append(part.summary())
        digest.update(_as_bytes(part.lines))
    if not parts:
        raise ValueError(f"{path} must hold at least one line, a sentence a line, but is empty")
    return TextSummary(sum(part.n_lines for part in parts), parts, digest.hexdigest())


def _as_bytes(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
