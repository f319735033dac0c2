"""The nearest neighbours of a word in its sentence, from an index: Table 4 of the paper."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elmo_tasks.analysis.neighbors.files import Layer
from elmo_tasks.analysis.neighbors.identity import check_bilm
from elmo_tasks.analysis.neighbors.index import Neighbor, NeighborIndex
from elmo_tasks.analysis.neighbors.static_vectors import StaticVectors
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.pretrained import NAMED_BILMS, cache_home, pretrained_files

__all__ = ["FoundNeighbors", "NeighborFinder", "Query", "find_neighbors", "marked_word", "position_of"]

_MARKED = re.compile(r"\[([^\[\]]*)\]")


class Query(NamedTuple):
    """A sentence, and the place of a word in it."""

    words: list[str]
    position: int


@dataclass(frozen=True, kw_only=True)
class FoundNeighbors:
    """
    # Parameters

    words, position
        The sentence, and the place of the word.
    layer
        The layer that was searched.
    where
        The tags that neighbours had to have.
    recall
        Of an approximate search, how many of ten neighbours it finds, from 0 to 1, as it was measured on this index;
        `None`: the search was exact.
    neighbors
        Words in their sentences, the nearest first.
    static_neighbors
        The same of a static vector; `None` if none was asked for, or the word has none.
    """

    words: list[str]
    position: int
    layer: Layer
    where: Mapping[str, str]
    recall: float | None
    neighbors: list[Neighbor]
    static_neighbors: list[tuple[str, float]] | None

    def to_json(self, *, indent: int | None = None) -> str:
        """All of it as JSON."""
        content = {**asdict(self), "neighbors": [neighbor._asdict() for neighbor in self.neighbors]}
        return json.dumps(content, ensure_ascii=False, indent=indent)

    def write(self, path: Path) -> None:
        """Writes it as a file of JSON."""
        with atomic_file(path) as file:
            file.write_text(self.to_json(indent=2) + "\n", encoding="utf-8")


class NeighborFinder:
    """
    An index with its biLM, opened once for many queries.

    # Parameters

    folder
        The index.
    bilm
        The biLM of the index. `None`: the one that the index names, unless that would have to be downloaded.
    static
        A file of static vectors, see `StaticVectors.from_file`.

    # Raises

    `ValueError`, `FileNotFoundError`
        If one of the files is not there or damaged, or the biLM is not that of the index.
    """

    def __init__(self, folder: Path, *, bilm: str | None = None, static: str | PathLike[str] | None = None) -> None:
        self.index = NeighborIndex(folder)
        name = _bilm_of(self.index, bilm)
        self._elmo = Elmo.from_pretrained(name)
        self.files = [
            *self.index.folder.iterdir(),
            *pretrained_files(name),
            *([] if static is None else [Path(static)]),
        ]
        """All that a query reads."""
        check_bilm(self.index, self._elmo, name)
        self._static = None if static is None else StaticVectors.from_file(static)

    def check(
        self, *, k: int, layer: Layer | None, where: Mapping[str, str] | None = None, approximate: bool = False
    ) -> None:
        """Raises at once what `find` would raise of these arguments."""
        if k < 1:
            raise ValueError(f"k must be at least 1, but is {k}")
        self.index.layer_of(layer)
        if where:
            self.index.rows_with(where)
        # A search with a filter is always exact.
        if approximate and not where:
            self.index.graph(layer)

    def find(
        self,
        queries: Sequence[Query],
        k: int = 10,
        *,
        layer: Layer | None = None,
        where: Mapping[str, str] | None = None,
        approximate: bool = False,
    ) -> list[FoundNeighbors]:
        """
        # Parameters

        queries
            Words in sentences; put into NFC if the text of the index was.
        k, layer, where, approximate
            See `NeighborIndex.search_many`.

        # Returns

        `List[FoundNeighbors]`
            One for each query.

        # Raises

        `ValueError`, `FileNotFoundError`, `ModuleNotFoundError`
            See `NeighborIndex.search_many`.
        """
        if not queries:
            return []
        queries = [Query(self.index.in_form(query.words), query.position) for query in queries]
        layer = self.index.layer_of(layer)
        # Not said of a search with a filter, which is always exact.
        recall = self.index.graph(layer).recall if approximate and not where else None
        embedded = self._elmo.embed([query.words for query in queries], layers=layer, progress=False)
        # Shape: (n_queries, dim)
        vectors = np.stack([array[query.position] for array, query in zip(embedded, queries, strict=True)])
        found = self.index.search_many(
            vectors, k, without=[query.words for query in queries], layer=layer, where=where, approximate=approximate
        )
        return [
            FoundNeighbors(
                words=query.words,
                position=query.position,
                layer=layer,
                where=dict(where or {}),
                recall=recall,
                neighbors=neighbors,
                static_neighbors=None if self._static is None else self._static.nearest(query.words[query.position], k),
            )
            for query, neighbors in zip(queries, found, strict=True)
        ]


def find_neighbors(
    folder: Path,
    words: list[str],
    position: int,
    *,
    bilm: str | None = None,
    k: int = 10,
    static: str | PathLike[str] | None = None,
) -> FoundNeighbors:
    """
    One query: see `NeighborFinder`.

    # Parameters

    folder, bilm, static
        See `NeighborFinder`.
    words, position
        A sentence, and the place of the word in it.
    k
        How many neighbours.

    # Raises

    `ValueError`, `FileNotFoundError`
        See `NeighborFinder`.
    """
    return NeighborFinder(folder, bilm=bilm, static=static).find([Query(words, position)], k)[0]


def _bilm_of(index: NeighborIndex, bilm: str | None) -> str:
    """The biLM of a query. Only an index that `index_text` made says which one it is of."""
    if bilm is None:
        bilm = index.about.get("bilm")
        if bilm is None:
            raise ValueError(f"'{index.folder}' does not say which biLM it was made with: name it with --bilm")
        if bilm not in NAMED_BILMS and not Path(bilm).expanduser().is_dir():
            raise ValueError(
                f"'{index.folder}' was made with the biLM in '{bilm}', but there is no such folder: name it with --bilm"
            )
        if _is_to_be_downloaded(bilm):
            raise ValueError(
                f"'{index.folder}' was made with the biLM '{bilm}', which is not on this machine, and an index must "
                f"not begin a download: add --bilm {bilm}"
            )
    return bilm


def _is_to_be_downloaded(bilm: str) -> bool:
    if NAMED_BILMS.get(bilm) is None:
        return False
    return not all((cache_home() / bilm / name).is_file() for name in ("options.json", "weights.hdf5"))


def position_of(word: str, words: list[str], position: int | None) -> int:
    """
    # Returns

    `int`
        The place of a word in a sentence.

    # Raises

    `ValueError`
        If the word is there several times and no place is given, or it is not there, or not at that place.
    """
    places = [place for place, found in enumerate(words) if found == word]
    if position is None and len(places) == 1:
        return places[0]
    if position is not None and position in places:
        return position
    numbered = " ".join(f"{place}:{found}" for place, found in enumerate(words))
    if position is not None:
        raise ValueError(f"--position must be a place of {word!r}, but is {position}; the words are {numbered}")
    remedy = "choose one with --position" if places else "name one of them with --word"
    raise ValueError(f"{word!r} must be in the sentence once, but is {len(places)} times: {remedy}: {numbered}")


def marked_word(text: str, tokenizer: Callable[[str], list[str]] = str.split) -> Query:
    """
    # Parameters

    text
        A sentence with one word in brackets, as `They went to the [river] .`, or a word alone. Of several brackets
        those count that have one word and no white space: others, as `[ sic ]`, are of the sentence itself.
    tokenizer
        Splits what is before and after the word.

    # Raises

    `ValueError`
        If there is another number of words in brackets, or of those between two brackets.
    """
    marked = list(_MARKED.finditer(text))
    if not marked and len(text.split()) == 1:
        return Query(text.split(), 0)
    if len(marked) > 1:
        tight = [each for each in marked if [each[1]] == each[1].split()]
        marked = tight if len(tight) == 1 else marked
    if len(marked) != 1:
        remedy = ": write one of them without white space, and the others as [ a ]" if marked else ""
        raise ValueError(
            "a query must have one word in brackets, as 'They went to the [river] .', but "
            f"{text!r:.100} has {len(marked)}{remedy}"
        )
    (found,) = marked
    words = found[1].split()
    if len(words) != 1:
        raise ValueError(f"between the brackets must be one word, but there is {found[1]!r:.100}")
    left = tokenizer(text[: found.start()])
    return Query([*left, *words, *tokenizer(text[found.end() :])], len(left))
