"""The page of words: few, each with one meaning, and with a class or function as its home."""

import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tests.docs.blocks import DOCS
from tests.paths import CHECKOUT

PAGE = DOCS / "internals" / "words.md"
_HEADER = "| word | meaning | home |"
_ROW = re.compile(r"^\| (.+) \| (.+) \| \[`(\w+)`\]\((\S+\.py)\) \|$", re.MULTILINE)


class Entry(NamedTuple):
    word: str
    meaning: str
    name: str
    file: str


def entries() -> list[Entry]:
    return [Entry(*row) for row in _ROW.findall(PAGE.read_text(encoding="utf-8"))]


def module_of(file: Path) -> str:
    """The name by which a source file of one of the two packages is imported."""
    path = file.resolve().relative_to(CHECKOUT)
    return ".".join(path.with_suffix("").parts).removeprefix("allennlp_today.")


def test_there_are_few_words_and_each_has_one_row():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and line != _HEADER]
    words = [entry.word for entry in entries()]
    # Every row has the form that the other test reads.
    assert len(words) == len(rows)
    assert len(words) <= 40
    assert len(set(words)) == len(words)


def test_every_word_is_at_home_in_the_module_that_it_names():
    homes = set()
    for entry in entries():
        module = module_of(PAGE.parent / entry.file)
        home = getattr(import_module(module), entry.name)
        assert home.__module__ == module, f"{entry.word}: {entry.name} is imported into {module}"
        homes.add((module, entry.name))
    assert len(homes) == len(entries()), "two words have the same home"
