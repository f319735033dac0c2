"""Words with their senses in the XML and the keys of the unified evaluation framework (Raganato et al. 2017)."""

from collections.abc import Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from elmo_tasks.data.dataset_readers.sst_reader import TREEBANK_WORDS
from elmo_tasks.files.folders import files_below
from elmo_tasks.files.text_lines import MAX_LINE_BYTES, numbered_lines, opened

__all__ = ["WsdCorpus", "WsdInstance", "WsdSentence"]

_XML, _KEYS = ".data.xml", ".gold.key.txt"
_SENTENCE, _INSTANCE = "sentence", "instance"
_WORDS = ("wf", _INSTANCE)
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
        files = [file for file in files_below(Path(folder)) if file.name.endswith((_XML, f"{_XML}.gz"))]
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
        for where, sentence in _sentences(self.path):
            words: list[str] = []
            instances = []
            for text, attributes in sentence:
                start = len(words)
                words += (TREEBANK_WORDS.get(word, word) for word in text.split())
                if attributes is not None:
                    instance = self._instance(attributes, text, where, start, len(words))
                    if instance.id not in missing:
                        raise ValueError(f"{where}: the instance {instance.id} must come once, but comes twice")
                    missing.remove(instance.id)
                    instances.append(instance)
            if words:
                yield WsdSentence(words, instances)
        if missing:
            raise ValueError(
                f"{self.key_path} must hold the senses of the instances in {self.path.name}, but has {len(missing)} "
                f"that it lacks, {min(missing)} among them: take both files from one release"
            )

    def _instance(self, attributes: dict[str, str], text: str, where: str, start: int, end: int) -> WsdInstance:
        name, lemma, pos = (attributes.get(key) for key in ("id", "lemma", "pos"))
        if not name or not lemma or pos not in _PARTS_OF_SPEECH or start == end:
            raise ValueError(
                f"{where}: an instance must have an id, a lemma, a text, and as pos one of "
                f"{', '.join(_PARTS_OF_SPEECH)}, but has {attributes} and the text {text!r}"
            )
        if name not in self.keys:
            raise ValueError(f"{where}: {self.key_path.name} must hold the sense of {name}, but does not")
        return WsdInstance(name, lemma.lower(), pos, start, end, self.keys[name])


# The text of each <wf> and <instance>, with the attributes if it is an instance.
_Words = list[tuple[str, dict[str, str] | None]]


def _sentences(path: Path) -> Iterator[tuple[str, _Words]]:
    """The sentences of an XML file, each with its place; only one is in memory at a time."""
    reader = _XmlReader(path)
    parser = reader.parser
    n_bytes = 0
    with opened(path) as file:
        try:
            while chunk := file.read(2**16):
                n_bytes += len(chunk)
                parser.Parse(chunk)
                yield from reader.taken()
                if n_bytes - reader.end_of_sentence > MAX_LINE_BYTES:
                    raise ValueError(
                        f"{reader.where}: there must be less than {MAX_LINE_BYTES // 2**20} MiB from one end of a "
                        "sentence to the next, but here is more"
                    )
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise ValueError(
                f"{path}, line {error.lineno}: the file must be XML, but here it is not: {error}"
            ) from None
        except (LookupError, ValueError) as error:
            if str(error).startswith(f"{path}"):
                raise
            # From the parser's search for the encoding that the first line names.
            raise ValueError(f"{path}, line 1: the file must be XML in UTF-8, but is not: {error}") from None
    yield from reader.taken()


class _XmlReader:
    """
    What expat finds in a file, checked as it comes: with a tree, words that stand elsewhere than in `<wf>` or
    `<instance>` would be lost unseen, and errors would have no line.
    """

    def __init__(self, path: Path) -> None:
        self.end_of_sentence = 0
        self._path = path
        self._found: list[tuple[str, _Words]] = []
        self._sentence: _Words | None = None
        self._name: str | None = None
        # Of the <wf> or <instance> that is open.
        self._tag = ""
        self._attributes: dict[str, str] = {}
        self._text: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.EntityDeclHandler = self._refuse_entity
        self.parser.SkippedEntityHandler = self._refuse_entity
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._read

    @property
    def where(self) -> str:
        """The place as an error names it."""
        line = f"{self._path}, line {self.parser.CurrentLineNumber}"
        return line if self._sentence is None else f"{line}, sentence {self._name}"

    def taken(self) -> list[tuple[str, _Words]]:
        """The sentences that have ended since the last call, each with its place."""
        found, self._found = self._found, []
        return found

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise ValueError(f"{self.where}: a data set must define no entities and use only those of XML, but has {name}")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _WORDS:
            if self._sentence is None or self._tag:
                place = f"in <{self._tag}>" if self._tag else "in no sentence"
                raise ValueError(f"{self.where}: <{tag}> must be directly in a sentence, but is {place}")
            self._tag, self._attributes = tag, attributes
        elif self._sentence is not None:
            raise ValueError(f"{self.where}: a sentence must consist of <wf> and <instance>, but has <{tag}>")
        elif tag == _SENTENCE:
            self._sentence, self._name = [], attributes.get("id")

    def _end(self, tag: str) -> None:
        if self._sentence is None:
            return
        if self._tag:
            self._sentence.append(("".join(self._text), self._attributes if self._tag == _INSTANCE else None))
            self._tag, self._text = "", []
        else:
            self._found.append((self.where, self._sentence))
            self._sentence, self.end_of_sentence = None, self.parser.CurrentByteIndex

    def _read(self, text: str) -> None:
        if self._tag:
            self._text.append(text)
        elif text.strip():
            raise ValueError(
                f"{self.where}: words must be in <wf> or <instance>, but here are {text.strip()!r:.100} outside"
            )
