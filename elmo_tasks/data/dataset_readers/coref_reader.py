"""Dataset reader for coreference, and functions that read and write CoNLL-2012 columns."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import ListField, MetadataField

from elmo_tasks.data.dataset_readers.task_reader import TaskReader, sentence_fields, word_of
from elmo_tasks.files.lines import located
from elmo_tasks.text.formats import columns_of, corpus_words, lines_in

__all__ = ["CorefDocument", "CorefReader", "read_documents"]

Mention = tuple[int, int]
"""First and last word (inclusive), counted from the beginning of the document."""

_BEGIN = re.compile(r"#begin document \((.*)\)(?:; part (\d+))?\s*")
_BRACKETS = re.compile(r"(\()?(\d+)(\))?")
# Empty cells of the last column in OntoNotes, and in LitBank.
_NONE = ("-", "_")
# The columns of the word and, if the line has enough columns, of the speaker.
_WORD, _SPEAKER = 3, 9


@DatasetReader.register("elmo_coref")
class CorefReader(TaskReader):
    """
    Reads documents in the columns of CoNLL-2012: see `read_documents`. AllenNLP's `coref` reads
    neither speakers nor genres, and joins all sentences into one text.

    # Parameters

    remove_singleton_clusters : `bool`
        Whether clusters of one mention are dropped. OntoNotes has none, and the model never
        predicts one, so it would miss them all in a corpus that has them, such as LitBank.
    """

    def __init__(self, *, remove_singleton_clusters: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._remove_singleton_clusters = remove_singleton_clusters

    wanted = "document"

    def rows(self, path: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
        for document in read_documents(path, with_clusters=self.reads_gold):
            arguments = (
                document.sentences,
                document.speakers,
                document.clusters,
                document.name,
                document.part,
            )
            yield document.name, arguments

    def text_to_instance(
        self,
        sentences: Sequence[Sequence[str | Token]],
        speakers: Sequence[Sequence[str]] | None = None,
        clusters: Iterable[Iterable[tuple[int, int]]] | None = None,
        name: str = "",
        part: int = 0,
        genre: str | None = None,
    ) -> Instance:
        """
        `tokens`, a list of sentences, and `metadata`. A cluster has the first and last word of each
        mention, counted from the beginning of the document. `genre` is by default the first two
        letters of the name, as in OntoNotes.
        """
        # A list of fields must not be empty.
        texts = [sentence_fields(words)["tokens"] for words in sentences or [[]]]
        if not speakers:
            speakers = [["-"] * len(words) for words in sentences]
        metadata: dict[str, Any] = {
            "document": name,
            "part": part,
            "genre": name[:2] if genre is None else genre,
            "sentences": [[token.text for token in text] for text in texts],
            "speakers": [list(sentence_speakers) for sentence_speakers in speakers],
        }
        if clusters is not None:
            metadata["clusters"] = self._mentions_of(clusters)
        return Instance({"tokens": ListField(texts), "metadata": MetadataField(metadata)})

    def _mentions_of(self, clusters: Iterable[Iterable[tuple[int, int]]]) -> list[list[Mention]]:
        mentions_of_clusters = []
        for cluster in clusters:
            mentions = [(start, end) for start, end in cluster]
            if len(mentions) > 1 or not self._remove_singleton_clusters:
                mentions_of_clusters.append(mentions)
        return mentions_of_clusters


class CorefDocument(NamedTuple):
    """A document, or a part of one, with its annotation in CoNLL-2012."""

    name: str
    part: int
    sentences: list[list[str]]
    # One for each word; "-" if unknown.
    speakers: list[list[str]]
    # None if they are not read.
    clusters: list[list[Mention]] | None


def read_documents(path: str, *, with_clusters: bool = True) -> Iterator[CorefDocument]:
    """
    The documents of a file. The fourth column is the word, the last is coreference, and the tenth
    is the speaker if there are at least eleven columns. Clusters that share a mention are merged,
    as in Lee et al.'s data.
    """
    document: _OpenDocument | None = None
    for number, line in lines_in(
        path, "CoNLL-2012", "CoNLL-2012", "columns", "tsv", hint="see docs/tasks/coref.md"
    ):
        if document is not None and line.startswith("#end document"):
            yield document.closed(path, with_clusters)
            document = None
        elif match := _BEGIN.fullmatch(line):
            document = _OpenDocument(name=match[1], part=int(match[2] or 0))
        elif document is not None and not line.strip():
            document.is_between_sentences = True
        elif line.strip():
            columns = columns_of(line)
            if document is None or len(columns) <= _WORD + 1 or not columns[_WORD - 1].isdecimal():
                begin = "'#begin document (NAME); part 000'"
                expected = f"{begin}, and lines with a word in the fourth column"
                raise ValueError(f"expected {expected}, got {line[:80]!r}: {path}, line {number}")
            document.add_word(number, columns)
    if document is not None:
        raise ValueError(f"expected '#end document' before the end of the file: {path}")


@dataclass
class _OpenDocument:
    """What is read of a document before its end."""

    name: str
    part: int
    sentences: list[list[str]] = field(default_factory=list)
    speakers: list[list[str]] = field(default_factory=list)
    cells: list[tuple[int, str]] = field(default_factory=list)
    """The number and the last column of each line."""
    is_between_sentences: bool = True

    def add_word(self, number: int, columns: list[str]) -> None:
        if self.is_between_sentences:
            self.sentences.append([])
            self.speakers.append([])
            self.is_between_sentences = False
        self.sentences[-1].append(word_of(columns[_WORD]))
        speaker = "-"
        if len(columns) > _SPEAKER + 1:
            speaker = columns[_SPEAKER]
        self.speakers[-1].append(speaker)
        self.cells.append((number, columns[-1]))

    def closed(self, path: str, with_clusters: bool) -> CorefDocument:
        for words in self.sentences:
            with located(path, self.name):
                corpus_words(words)
        clusters = None
        if with_clusters:
            clusters = _clusters(path, self.cells)
        return CorefDocument(
            name=self.name,
            part=self.part,
            sentences=self.sentences,
            speakers=self.speakers,
            clusters=clusters,
        )


def _clusters(path: str, cells: list[tuple[int, str]]) -> list[list[Mention]]:
    # For each cluster, the first words of its open mentions, and its complete mentions.
    opened: dict[str, list[int]] = defaultdict(list)
    mentions: dict[str, list[Mention]] = defaultdict(list)
    for word, (number, cell) in enumerate(cells):
        brackets = () if cell in _NONE else cell.split("|")
        for bracket in brackets:
            match = _BRACKETS.fullmatch(bracket)
            if match is None:
                raise _unexpected_bracket(bracket, path, number)
            cluster = match[2]
            if match[1]:
                opened[cluster].append(word)
            if match[3]:
                if not opened[cluster]:
                    raise _unexpected_bracket(bracket, path, number)
                mentions[cluster].append((opened[cluster].pop(), word))
            elif not match[1]:
                raise _unexpected_bracket(bracket, path, number)
    for cluster, starts in opened.items():
        if starts:
            number, _ = cells[starts[0]]
            raise ValueError(f"expected '{cluster})' in a later line: {path}, line {number}")
    return _merged(mentions.values())


def _unexpected_bracket(bracket: str, path: str, number: int) -> ValueError:
    expected = "'-' or brackets like '(0|1)|(2)', each opened once"
    return ValueError(f"expected {expected}, got {bracket!r}: {path}, line {number}")


def _merged(clusters: Collection[list[Mention]]) -> list[list[Mention]]:
    """Disjoint clusters, in the order of their first mentions; each mention once, in order."""
    # Imported here because it would slow down every start of `allennlp`.
    from scipy.cluster.hierarchy import DisjointSet

    mentions = DisjointSet(chain.from_iterable(clusters))
    for cluster in clusters:
        for mention in cluster:
            mentions.merge(cluster[0], mention)
    merged: list[list[Mention]] = sorted(map(sorted, mentions.subsets()))
    return merged
