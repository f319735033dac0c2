"""The texts of a call of a task: single ones, lists, a list of pairs, or texts by name."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elmo_tasks.vectors.docs import is_doc

__all__ = ["as_columns", "is_single", "rows_of", "texts_by_name"]


def texts_by_name(
    names: Sequence[str], values: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """
    The values of a call, which are texts or lists of texts, by the names of the texts that the task
    takes. `values` are in the order of `names`; or the only one is a list of tuples in this order.
    """
    if len(values) == 1 and len(names) > 1 and not named:
        columns = _columns_of_pairs(names, values[0])
        if columns is not None:
            return columns
    given = {**dict(zip(names, values, strict=False)), **named}
    if len(values) + len(named) != len(names) or given.keys() != set(names):
        shown = [f"{value!r:.40}" for value in values]
        shown += [f"{name}=..." for name in named]
        expected = " and ".join(names)
        raise TypeError(f"expected {expected}, got {', '.join(shown) or 'nothing'}")
    return {name: given[name] for name in names}


def as_columns(given: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """
    Checks the values of `texts_by_name`: each a text, or a list of texts; all lists have one
    length.
    """
    columns = {name: _column(name, value) for name, value in given.items()}
    counts = {name: len(column) for name, column in columns.items() if isinstance(column, list)}
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{count} as {name}" for name, count in counts.items())
        raise ValueError(f"expected as many texts for each input, got {shown}")
    return columns


def is_single(columns: Mapping[str, str | list[str]]) -> bool:
    """Whether a call has one input, and not a list."""
    return all(isinstance(column, str) for column in columns.values())


def rows_of(columns: Mapping[str, str | list[str]]) -> list[tuple[str, ...]]:
    """The texts of each input. A text next to a list belongs to each of its texts."""
    n_inputs = 1
    for column in columns.values():
        if isinstance(column, list):
            n_inputs = len(column)
    lists = []
    for column in columns.values():
        lists.append([column] * n_inputs if isinstance(column, str) else column)
    return list(zip(*lists, strict=True))


def _columns_of_pairs(names: Sequence[str], value: Any) -> dict[str, Any] | None:
    """The texts by name, from a list of tuples of texts. `None`: it is a different value."""
    if not _is_list(value):
        return None
    pairs = list(value)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != len(names):
            return None
    return {name: [pair[number] for pair in pairs] for number, name in enumerate(names)}


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str) and not is_doc(value)


def _column(name: str, value: Any) -> str | list[str]:
    """A text, or a list of texts."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) or hasattr(value, "columns"):
        raise TypeError("expected texts, got a table: give one of its columns")
    texts = list(value) if _is_list(value) else [value]
    for number, text in enumerate(texts):
        if isinstance(text, str):
            continue
        if is_doc(text):
            hint = "give doc.text, or add a component such as elmo_ner to its pipeline"
            raise TypeError(f"expected texts, got a {type(text).__name__} of spaCy: {hint}")
        raise TypeError(f"expected texts, got {text!r:.40} ({name} {number})")
    return texts
