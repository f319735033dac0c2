"""Subsets of a training set, for Figure 1."""

import json
from functools import lru_cache
from pathlib import Path

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.json_files import text_digest

__all__ = ["size_of", "write_subset"]

# The columns of a CoNLL-2012 line in a sentence without a predicate.
_COLUMNS_WITHOUT_PREDICATE = 12


@lru_cache
def size_of(source: Path) -> int | None:
    """The number of items of a training set; `None` if it does not exist here."""
    return len(_items(source)) if source.exists() else None


def write_subset(source: Path, size: int, folder: Path) -> Path:
    """Writes `size` items of a training set in their order: always the same ones, all included in larger subsets."""
    target = folder / f"{source.parent.name}-{size}{source.suffix or '.gold_conll'}"
    if source.exists() and not target.exists():
        items = _items(source)
        # Ordered by the digest of the index, not of the text, so equal pairs are not chosen together.
        order = sorted(range(len(items)), key=lambda index: text_digest(str(index)))
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(target) as part:
            part.write_text("".join(items[index] for index in sorted(order[:size])), "utf-8")
    return target


def _items(source: Path) -> list[str]:
    """The lines of SNLI that have a label, or the sentences of CoNLL-2012's columns that have a predicate."""
    if source.suffix == ".jsonl":
        lines = source.read_text("utf-8").split("\n")
        return [f"{line}\n" for line in lines if line.strip() and json.loads(line).get("gold_label") != "-"]
    sentences = []
    for file in sorted(source.rglob("*gold_conll")) if source.is_dir() else [source]:
        for block in file.read_text("utf-8").split("\n\n"):
            rows = [line for line in block.split("\n") if line.strip() and not line.startswith("#")]
            if rows and len(rows[0].split()) > _COLUMNS_WITHOUT_PREDICATE:
                sentences.append("\n".join(rows) + "\n\n")
    return sentences
