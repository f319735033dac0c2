"""`char.dic` and `word.dic`: the characters and the words of a model of ELMoForManyLangs."""

from collections.abc import Sequence
from os import PathLike

from elmo_tasks.files.text_lines import byte_lines, decoded

__all__ = ["read_dictionary"]

# A line of white space alone: the one character of white space that words of these models have.
_IDEOGRAPHIC_SPACE = "\u3000"


def read_dictionary(path: str | PathLike[str], needed: Sequence[str]) -> list[str]:
    """
    Reads a dictionary: a key, a tab and its number in each line.

    # Parameters

    path
        The file.
    needed
        Keys that must be there.

    # Returns

    `List[str]`
        The keys in the order of their numbers.

    # Raises

    `ValueError`
        If a line is something else, the numbers are not those from 0 on, or a key is missing; with file and line.
    """
    numbers: dict[str, int] = {}
    # Neither NUL nor a carriage return within a line is refused: they may be characters of a text.
    for number, line in byte_lines(path):
        text = decoded(line, path, number)
        fields = text.strip().split("\t")
        if len(fields) == 1:
            fields.insert(0, _IDEOGRAPHIC_SPACE)
        if len(fields) != 2 or not (fields[1].isascii() and fields[1].isdecimal() and len(fields[1]) < 12):
            raise ValueError(f"{path}, line {number}: a line must be a key, a tab and a number, but is {text!r:.80}")
        # Of two lines with one key, the original takes the later.
        numbers[fields[0]] = int(fields[1])
    if missing := [key for key in needed if key not in numbers]:
        raise ValueError(f"{path}: a dictionary of this kind must have the key '{missing[0]}', but has not")
    keys = sorted(numbers, key=lambda key: numbers[key])
    for expected, key in enumerate(keys):
        if numbers[key] != expected:
            raise ValueError(
                f"{path}: the {len(keys)} keys must have the numbers from 0 to {len(keys) - 1}, each once, but "
                f"{key!r:.80} has {numbers[key]} where {expected} is next: the file is damaged, or a key stands in it "
                "twice"
            )
    return keys
