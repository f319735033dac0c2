"""Words with their senses in the XML and the keys of the unified evaluation framework (Raganato et al. 2017)."""

from collections.abc import Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from elmo_tasks.data.formats.treebank_words import TREEBANK_WORDS
from elmo_tasks.text_lines import numbered_lines, opened

__all__ = ["WsdCorpus", "WsdInstance", "WsdSentence"]

_XML, _KEYS = ".data.xml", ".gold.key.txt"
_PARTS_OF_SPEECH = ("NOUN", "VERB", "ADJ", "ADV")


class WsdInstance(NamedTuple):
    """A word, or several, that has a sense."""

    id: str
    lemma: str
    pos: str
    # Its first word in the sentence, and the one after its last.
    start: int
    end: int
    # All correct ones, by their keys in WordNet.
    senses: tuple[str, ...]


class WsdSentence(NamedTuple):
    """
    A sentence as the biLM gets it: a word with spaces in the XML is several words, and quotes and brackets are written
    as in ordinary text, and not as in the Penn Treebank.
    """

    words: list[str]
    instances: list[WsdInstance]


class WsdCorpus:
    """
    The sentences of a data set; each `iter()` reads the file again and keeps nothing.

    # Parameters

    path : `Union[str, os.PathLike]`
        `NAME.data.xml` or `NAME.data.xml.gz`, next to `NAME.gold.key.txt` or `NAME.gold.key.txt.gz`.

    # Raises

    `ValueError`
        If the name does not end like these; while reading, if a file is broken, or the two do not fit each other.
    `FileNotFoundError`
        If one of the two does not exist.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        name = self.path.name.removesuffix(".gz")
        if not name.endswith(_XML):
            raise ValueError(f"a data set must be a file NAME{_XML} or NAME{_XML}.gz, but is '{path}'")
        self.name = name.removesuffix(_XML)
        if not self.path.is_file():
            raise FileNotFoundError(f"there must be a data set '{path}', but there is no such file")
        choices = [self.path.with_name(f"{self.name}{_KEYS}{end}") for end in ("", ".gz")]
        found = [file for file in choices if file.is_file()]
        if not found:
            raise FileNotFoundError(
                f"next to '{path}' must be its keys, {choices[0].name}, plain or .gz, but there is no such file"
            )
        self.key_path = found[0]

    @classmethod
    def find(cls, folder: str | PathLike[str]) -> list["WsdCorpus"]:
        """
        The data sets in a folder and those in it, in the order of their names. One of the name `ALL`, which the
        framework makes of the others, is skipped, so that no instance counts twice.

        # Raises

        `FileNotFoundError`
            If there are no data sets.
        """
        files = [file for end in ("", ".gz") for file in Path(folder).rglob(f"*{_XML}{end}")]
        corpora = sorted((cls(file) for file in files if not file.name.startswith(f"ALL{_XML}")), key=lambda c: c.name)
        if not corpora:
            raise FileNotFoundError(f"'{folder}' must hold data sets, NAME{_XML} with NAME{_KEYS}, but holds none")
        names = [corpus.name for corpus in corpora]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"a data set must have one file, but {', '.join(twice)} has several in '{folder}'")
        return corpora

    @cached_property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """The correct senses of each instance."""
        keys: dict[str, tuple[str, ...]] = {}
        for number, line in numbered_lines(self.key_path):
            where = f"{self.key_path}, line {number}"
            name, *senses = line.split() or [""]
            if not name:
                continue
            if not senses or not all("%" in sense for sense in senses):
                raise ValueError(
                    f"{where}: a line must have the id of an instance and sense keys like play%1:10:01::, but is "
                    f"{line.strip()!r:.100}"
                )
            if name in keys:
                raise ValueError(f"{where}: an instance must have one line, but {name} has another above")
            keys[name] = tuple(senses)
        if not keys:
            raise ValueError(f"{self.key_path} must hold the senses of at least one instance, but holds none")
        return keys

    def __iter__(self) -> Iterator[WsdSentence]:
        missing = set(self.keys)
        with opened(self.path) as file:
            try:
                for _, element in ElementTree.iterparse(file):
                    if element.tag == "sentence":
                        sentence = self._sentence(element)
                        for instance in sentence.instances:
                            if instance.id not in missing:
                                raise ValueError(
                                    f"{self.path}: the instance {instance.id} must come once, but comes twice"
                                )
                            missing.remove(instance.id)
                        if sentence.words:
                            yield sentence
                    if element.tag in ("sentence", "text"):
                        element.clear()
            except ElementTree.ParseError as error:
                raise ValueError(
                    f"{self.path}, line {error.position[0]}: the file must be XML, but here it is not: {error}"
                ) from None
        if missing:
            raise ValueError(
                f"{self.key_path} must hold the senses of the instances in {self.path.name}, but has {len(missing)} "
                f"that it lacks, {min(missing)} among them: take both files from one release"
            )

    def _sentence(self, element: ElementTree.Element) -> WsdSentence:
        where = f"{self.path}, sentence {element.get('id')}"
        words: list[str] = []
        instances = []
        for child in element:
            if child.tag not in ("wf", "instance"):
                raise ValueError(f"{where}: a sentence must consist of <wf> and <instance>, but has <{child.tag}>")
            start = len(words)
            words += (TREEBANK_WORDS.get(word, word) for word in (child.text or "").split())
            if child.tag == "instance":
                instances.append(self._instance(child, where, start, len(words)))
        return WsdSentence(words, instances)

    def _instance(self, element: ElementTree.Element, where: str, start: int, end: int) -> WsdInstance:
        name, lemma, pos = (element.get(key) for key in ("id", "lemma", "pos"))
        if not name or not lemma or pos not in _PARTS_OF_SPEECH or start == end:
            raise ValueError(
                f"{where}: an instance must have an id, a lemma, a text, and as pos one of "
                f"{', '.join(_PARTS_OF_SPEECH)}, but has {dict(element.items())} and the text {element.text!r}"
            )
        if name not in self.keys:
            raise ValueError(f"{where}: {self.key_path.name} must hold the sense of {name}, but does not")
        return WsdInstance(name, lemma.lower(), pos, start, end, self.keys[name])
