"""Reads and writes coreference in the columns of CoNLL-2012."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from elmo_tasks.data.formats.columns import check_count, columns_of, word_of
from elmo_tasks.data.formats.json_objects import check_unicode
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["CorefDocument", "begin_lines", "document_lines", "read_documents"]

Mention = tuple[int, int]
"""First and last word (inclusive), counted from the beginning of the document."""

_BEGIN = re.compile(r"#begin document \((.*)\)(?:; part (\d+))?\s*")
# ASCII's white space and control characters.
_ENDS_COLUMN = re.compile("[\x00-\x20\x7f]")
_BRACKETS = re.compile(r"(\()?(\d+)(\))?")
# The fewest columns: document, part, number of the word, word, coreference; and with a speaker.
_FEWEST = 5
_WITH_SPEAKER = 11


@dataclass
class CorefDocument:
    """A document, or a part of one, with its annotation in CoNLL-2012."""

    name: str
    part: int = 0
    sentences: list[list[str]] = field(default_factory=list)
    # One for each word; "-" where there is none.
    speakers: list[list[str]] = field(default_factory=list)
    clusters: list[list[Mention]] = field(default_factory=list)


def read_documents(path: str) -> Iterator[CorefDocument]:
    """
    The documents of a file. The fourth column is the word, the tenth the speaker where there are eleven or more, and
    the last the coreference. Clusters that have a mention in common are one, as in Lee et al.'s data.

    # Raises

    `ValueError`
        If the file is not in this form; the message names file and line.
    """
    builder: _Builder | None = None
    number = 0
    lines: dict[tuple[str, int], int] = {}
    for number, line in numbered_lines(path):
        try:
            if line.startswith("#begin document"):
                if builder is not None:
                    raise ValueError(f"document {builder.document.name!r} must end before another begins")
                builder = _begun(line)
                key = builder.document.name, builder.document.part
                if key in lines:
                    raise ValueError(
                        f"a document must come once, but part {key[1]} of {key[0]!r} begins in line {lines[key]} too"
                    )
                lines[key] = number
            elif line.startswith("#end document"):
                if builder is None:
                    raise ValueError("a document must begin before it ends")
                yield builder.ended()
                builder = None
            elif line.strip():
                if builder is None:
                    raise ValueError(f"words must be in a document, after '#begin document (NAME); part 000': {line!r}")
                builder.add(columns_of(line), number)
            elif builder is not None:
                builder.end_sentence()
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    if builder is not None:
        raise ValueError(
            f"{path}, line {number}: the document {builder.document.name!r} must end before the file, but does not"
        )
    if not lines:
        raise ValueError(f"{path} must hold at least one document, but holds none")


def begin_lines(path: str) -> dict[tuple[str, int], str]:
    """
    By the name and the part of each document of a file, the line that it begins with: `part 0` is `part 000`, but not
    to the reference scorer.

    # Raises

    `ValueError`
        If such a line is not in this form.
    """
    found = {}
    for number, line in numbered_lines(path):
        if line.startswith("#begin document"):
            try:
                document = _begun(line).document
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
            found[document.name, document.part] = line
    return found


def _begun(line: str) -> "_Builder":
    match = _BEGIN.fullmatch(line)
    if match is None:
        raise ValueError(f"a document must begin like '#begin document (NAME); part 000', but begins {line!r}")
    return _Builder(CorefDocument(match[1], int(match[2] or 0)))


class _Builder:
    """A document that is being read."""

    def __init__(self, document: CorefDocument) -> None:
        self.document = document
        self._n_words = 0
        self._n_columns = 0
        # Of the words of the sentence, as the file counts.
        self._numbers: list[str] = []
        # For each cluster, the first words of its open mentions, with their lines; and its mentions.
        self._open: dict[int, list[tuple[int, int]]] = {}
        self._mentions: dict[int, list[Mention]] = {}

    def add(self, columns: list[str], line: int) -> None:
        n_columns = self._n_columns or len(columns)
        if len(columns) != n_columns or n_columns < _FEWEST:
            wanted = f"at least {_FEWEST}" if n_columns < _FEWEST else n_columns
            raise ValueError(
                f"a line must have {wanted} columns, and as many as the first of its sentence, "
                f"but has {len(columns)}: {' '.join(columns)!r}"
            )
        if not self._n_columns:
            self._n_columns = n_columns
            self.document.sentences.append([])
            self.document.speakers.append([])
            self._numbers = []
        else:
            check_count(self._numbers, columns[2])
        self._numbers.append(columns[2])
        self.document.sentences[-1].append(word_of(columns[3]))
        self.document.speakers[-1].append(columns[9] if n_columns >= _WITH_SPEAKER else "-")
        if columns[-1] != "-":
            for bracket in columns[-1].split("|"):
                self._add_bracket(bracket, line)
        self._n_words += 1

    def _add_bracket(self, bracket: str, line: int) -> None:
        match = _BRACKETS.fullmatch(bracket)
        if match is None or not (match[1] or match[3]):
            raise ValueError(f"the last column must be '-' or brackets like '(0|1)|(2)', but has {bracket!r}")
        cluster = int(match[2])
        if match[1]:
            self._open.setdefault(cluster, []).append((self._n_words, line))
        if match[3]:
            if not self._open.get(cluster):
                raise ValueError(f"'{cluster})' ends a mention of cluster {cluster}, but none has begun")
            start, _ = self._open[cluster].pop()
            self._mentions.setdefault(cluster, []).append((start, self._n_words))

    def end_sentence(self) -> None:
        self._n_columns = 0

    def ended(self) -> CorefDocument:
        for cluster, starts in self._open.items():
            if starts:
                raise ValueError(
                    f"a mention of cluster {cluster} must end in its document, but one that begins in line "
                    f"{starts[-1][1]} does not"
                )
        self.document.clusters = _merged(self._mentions.values())
        return self.document


def _merged(clusters: Iterable[list[Mention]]) -> list[list[Mention]]:
    """Disjoint clusters, in the order of their first mentions; each mention once, in order."""
    cluster_of: dict[Mention, set[Mention]] = {}
    for cluster in clusters:
        together: set[Mention] = set()
        for mention in cluster:
            other = cluster_of.setdefault(mention, {mention})
            if other is not together:
                # The smaller joins the larger, so that a mention moves only a few times.
                together, other = (together, other) if len(together) > len(other) else (other, together)
                together |= other
                cluster_of.update(dict.fromkeys(other, together))
    return sorted(sorted(cluster) for cluster in {id(cluster): cluster for cluster in cluster_of.values()}.values())


def document_lines(
    name: str, part: int, sentences: Sequence[Sequence[str]], clusters: Iterable[Iterable[Sequence[int]]]
) -> Iterator[str]:
    """
    A document in twelve columns, with tabs between them, as the reference scorer splits lines; unknown columns have
    placeholders.

    # Parameters

    name, part : `str`, `int`
        The document's.
    sentences : `Sequence[Sequence[str]]`
        Its words.
    clusters : `Iterable[Iterable[Sequence[int]]]`
        First and last words of the mentions of each cluster.

    # Raises

    `ValueError`
        If the name or a word would break the columns, a mention is not in the document, or one crosses another of its
        cluster, which brackets cannot say.
    """
    _check_cell("name of the document", name)
    for word in (word for words in sentences for word in words):
        _check_cell("word", word)
    cells = _cells(clusters, sum(map(len, sentences)))
    yield f"#begin document ({name}); part {part:03d}"
    n_words = 0
    for words in sentences:
        for number, word in enumerate(words):
            coreference = "|".join(cells.get(n_words, ["-"]))
            yield "\t".join([name, str(part), str(number), word, "XX", *"*----*", coreference])
            n_words += 1
        yield ""
    yield "#end document"


def _check_cell(what: str, text: str) -> None:
    # Our reader and other programs take any of these for the end of a column, or of a line.
    if not text or _ENDS_COLUMN.search(text):
        raise ValueError(f"a {what} must have no white space or control character, and not be empty, but is {text!r}")
    if what != "word" and text.startswith("#"):
        raise ValueError(f"a {what} must not begin with '#', as comments do, but is {text!r}")
    check_unicode(text, f"a {what}")


def _cells(clusters: Iterable[Iterable[Sequence[int]]], n_words: int) -> dict[int, list[str]]:
    """The brackets of each word that has any; those of inner mentions are inside."""
    begins: dict[int, list[tuple[int, str]]] = {}
    ends: dict[int, list[tuple[int, str]]] = {}
    for number, cluster in enumerate(clusters):
        mentions = list(cluster)
        for start, end in mentions:
            if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= end < n_words):
                raise ValueError(f"a mention must be within the {n_words} words of its document, but is {[start, end]}")
            if start == end:
                begins.setdefault(start, []).append((0, f"({number})"))
            else:
                begins.setdefault(start, []).append((start - end, f"({number}"))
                ends.setdefault(end, []).append((-start, f"{number})"))
        _check_nested(mentions)
    # Ends first: they belong to earlier mentions. Longer mentions begin before shorter ones, and end after them.
    return {
        word: [bracket for _, bracket in [*sorted(ends.get(word, [])), *sorted(begins.get(word, []))]]
        for word in {*begins, *ends}
    }


def _check_nested(mentions: Iterable[Sequence[int]]) -> None:
    """Of one cluster: brackets of one number are closed in the order opposite to that in which they were opened."""
    open_mentions: list[Sequence[int]] = []
    for start, end in sorted(mentions, key=lambda mention: (mention[0], -mention[1])):
        while open_mentions and open_mentions[-1][1] <= start:
            open_mentions.pop()
        if open_mentions and open_mentions[-1][1] < end:
            raise ValueError(
                f"mentions of one cluster must not cross, but {list(open_mentions[-1])} and {[start, end]} do"
            )
        open_mentions.append((start, end))
