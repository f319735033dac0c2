"""
Words and their senses, from the XML and key files of the unified evaluation framework (Raganato et
al. 2017).
"""

from collections.abc import Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from elmo_tasks.files.lines import located, numbered_lines, opened
from elmo_tasks.text import TREEBANK_WORDS

__all__ = ["WsdCorpus", "WsdInstance", "WsdSentence"]

_XML = ".data.xml"
_KEYS = ".gold.key.txt"


class WsdInstance(NamedTuple):
    """
    One or more words of a sentence, from `start` up to but not including `end`. `senses` has the
    WordNet keys of all correct senses.
    """

    id: str
    lemma: str
    pos: str
    start: int
    end: int
    senses: tuple[str, ...]


class WsdSentence(NamedTuple):
    """
    A sentence in the form that the biLM reads: a word with spaces in the XML becomes several words,
    and quotes and brackets are written as in ordinary text.
    """

    words: list[str]
    instances: list[WsdInstance]


class WsdCorpus:
    """
    The sentences of `NAME.data.xml`, with the keys of `NAME.gold.key.txt` next to it; both may end
    with `.gz`. Each `iter()` reads the file again, and keeps nothing in memory.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.name = self.path.name.removesuffix(".gz").removesuffix(_XML)
        self.key_path = self.path.with_name(f"{self.name}{_KEYS}")
        if not self.key_path.exists():
            self.key_path = self.path.with_name(f"{self.name}{_KEYS}.gz")

    @classmethod
    def find(cls, folder: str | PathLike[str]) -> list["WsdCorpus"]:
        """
        The data sets in a folder and its subfolders, sorted by name. `ALL`, which the framework
        makes from the others, is skipped, so no instance counts twice.
        """
        files = [*Path(folder).rglob(f"*{_XML}.gz"), *Path(folder).rglob(f"*{_XML}")]
        corpora = {}
        for file in files:
            corpus = cls(file)
            if corpus.name != "ALL":
                # A set that exists both plain and compressed counts once.
                corpora[corpus.name] = corpus
        if not corpora:
            raise FileNotFoundError(f"expected data sets NAME{_XML} with NAME{_KEYS}: {folder}")
        return [corpora[name] for name in sorted(corpora)]

    @cached_property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The correct senses of each instance."""
        keys = {}
        for number, line in numbered_lines(self.key_path):
            if not line.strip():
                continue
            name, *senses = line.split()
            if not senses:
                raise ValueError(
                    f"expected an instance and its senses: {self.key_path}, line {number}"
                )
            keys[name] = tuple(senses)
        return keys

    def __iter__(self) -> Iterator[WsdSentence]:
        with opened(self.path) as file, located(self.path, "in XML"):
            for _, element in ElementTree.iterparse(file):
                if element.tag == "sentence":
                    if len(element):
                        yield self._sentence(element)
                    element.clear()

    def _sentence(self, element: ElementTree.Element) -> WsdSentence:
        words: list[str] = []
        instances = []
        for child in element:
            start = len(words)
            for word in (child.text or "").split():
                words.append(TREEBANK_WORDS.get(word, word))
            if child.tag != "instance":
                continue
            name = child.attrib["id"]
            if name not in self.keys:
                raise ValueError(f"expected the sense of {name}: {self.key_path}")
            instance = WsdInstance(
                id=name,
                lemma=child.attrib["lemma"].lower(),
                pos=child.attrib["pos"],
                start=start,
                end=len(words),
                senses=self.keys[name],
            )
            instances.append(instance)
        return WsdSentence(words, instances)
