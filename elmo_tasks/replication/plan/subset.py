"""Parts of a training set, for learning curves."""

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from elmo_tasks.data.formats.columns import columns_of
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.folders import files_below
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["SUBSET_TASKS", "size_of", "total_of", "write_subset"]

# Of CoNLL-2012: the columns of a line in a sentence without a predicate.
_COLUMNS_WITHOUT_PREDICATE = 12


def write_subset(task: str, source: Path, size: int, target: Path) -> None:
    """
    Writes a part of a training set: always the same for a size, and within that of any larger size. The items keep
    their order.

    # Parameters

    task
        One of `SUBSET_TASKS`.
    source, target
        The training set, and the file that is written, whole or not at all.
    size
        Pairs on whose label the annotators agreed, or sentences with a predicate.

    # Raises

    `ValueError`
        If there are fewer, or the training set is damaged.
    """
    items = _items(task, source)
    if size > len(items):
        raise ValueError(f"a size must be from 1 to {len(items)}, which {source} has, but one is {size}")
    # The digest of a number and not of a text: equal pairs are not taken together.
    order = sorted(range(len(items)), key=lambda index: hashlib.sha256(str(index).encode()).digest())
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(target) as part:
        part.write_text("".join(items[index] for index in sorted(order[:size])), encoding="utf-8")


def size_of(size: str, task: str, source: Path) -> int | None:
    """
    # Parameters

    size
        How much of a training set: a number, or a percentage, `"10%"`.
    task
        One of `SUBSET_TASKS`.
    source
        The training set.

    # Returns

    `Optional[int]`
        The number; `None` for all of it.

    # Raises

    `ValueError`
        If the size is neither, below 1, or more than there is.
    """
    total = total_of(task, source)
    try:
        count = round(float(size[:-1]) / 100 * total) if size.endswith("%") else int(size)
    except (ValueError, OverflowError):
        raise ValueError(f"a size must be a number or a percentage, as 1000 or 10%, but is {size!r}") from None
    if not 1 <= count <= total:
        raise ValueError(f"a size must be from 1 to {total}, which {source} has, but {size} is {count}")
    return None if count == total else count


def total_of(task: str, source: Path) -> int:
    """The size of the whole training set."""
    return len(_items(task, source))


@lru_cache(maxsize=2)
def _items(task: str, source: Path) -> list[str]:
    return list(SUBSET_TASKS[task](source))


def _pairs(source: Path) -> Iterator[str]:
    """The lines of SNLI that are trained on."""
    for number, line in numbered_lines(str(source)):
        if not line.strip():
            continue
        try:
            pair = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{source}, line {number}: a part can be taken of JSON lines only, but this line is not JSON: {error}"
            ) from None
        if not isinstance(pair, dict):
            raise ValueError(f"{source}, line {number}: must be a JSON object, but is {line.strip()!r:.60}")
        if pair.get("gold_label") != "-":
            yield line + "\n"


def _sentences(source: Path) -> Iterator[str]:
    """The sentences of CoNLL-2012's columns that have a predicate."""
    files = [file for file in files_below(source) if file.name.endswith("gold_conll")] if source.is_dir() else [source]
    for file in sorted(files):
        rows: list[str] = []
        for _, line in (*numbered_lines(str(file)), (0, "")):
            if line.strip() and not line.startswith("#"):
                rows.append(line)
                continue
            if rows and len(columns_of(rows[0])) > _COLUMNS_WITHOUT_PREDICATE:
                yield "\n".join(rows) + "\n\n"
            rows = []


SUBSET_TASKS: dict[str, Callable[[Path], Iterator[str]]] = {"snli": _pairs, "srl": _sentences}
