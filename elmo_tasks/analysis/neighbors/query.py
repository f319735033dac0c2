"""The nearest neighbours of a word in its sentence, from an index: Table 4 of the paper."""

import json
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.analysis.neighbor_builder import build_index
from elmo_tasks.analysis.neighbor_index import Neighbor, NeighborIndex
from elmo_tasks.analysis.static_vectors import StaticVectors
from elmo_tasks.data import LmText
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.pretrained import NAMED_BILMS, cache_home, pretrained_files

__all__ = ["FoundNeighbors", "find_neighbors", "index_text", "position_of"]


def index_text(
    corpus: str,
    folder: Path,
    bilm: str,
    *,
    layer: Literal["mix", "top"] | int = "top",
    dtype: Literal["float16", "float32"] = "float16",
    precision: Literal["float32", "tf32", "bf16"] = "float32",
    batch_tokens: int = 4096,
) -> NeighborIndex:
    """
    Builds an index that says which biLM it is of, so that a query can check it.

    # Parameters

    corpus
        See `LmText`.
    folder, layer, dtype, batch_tokens
        See `build_index`.
    bilm, precision
        See `Elmo.from_pretrained`.

    # Raises

    See `build_index`; and `ValueError` or `FileNotFoundError` if the biLM or the text is not there.
    """
    about = {"bilm": bilm, "weights": sha256_of(pretrained_files(bilm)[1]), "corpus": corpus}
    return build_index(
        Elmo.from_pretrained(bilm, precision=precision),
        LmText(corpus),
        folder,
        layer=layer,
        dtype=dtype,
        about=about,
        batch_tokens=batch_tokens,
    )


@dataclass(frozen=True, kw_only=True)
class FoundNeighbors:
    """
    # Parameters

    words, position
        The sentence, and the place of the word.
    layer
        The layer of the index.
    neighbors
        Words in their sentences, the nearest first.
    static_neighbors
        The same of a static vector; `None` if none was asked for, or the word has none.
    """

    words: list[str]
    position: int
    layer: str | int
    neighbors: list[Neighbor]
    static_neighbors: list[tuple[str, float]] | None

    def write(self, path: Path) -> None:
        """Writes all of it as JSON."""
        content = {**asdict(self), "neighbors": [neighbor._asdict() for neighbor in self.neighbors]}
        with atomic_file(path) as file:
            file.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


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
    # Parameters

    folder
        An index.
    words, position
        A sentence, and the place of the word in it.
    bilm
        The biLM of the index. `None`: the one that the index names, unless that would have to be downloaded.
    k
        How many neighbours.
    static
        A file of static vectors, see `StaticVectors.from_file`.

    # Raises

    `ValueError`, `FileNotFoundError`
        If one of the files is not there or damaged, or the biLM is not that of the index.
    """
    index = NeighborIndex(folder)
    elmo = Elmo.from_pretrained(_bilm_of(index, bilm))
    layer: Any = index.about["layer"]
    (vectors,) = elmo.embed([words], layers=layer, progress=False)
    return FoundNeighbors(
        words=words,
        position=position,
        layer=layer,
        neighbors=index.search(vectors[position], k, without=words),
        static_neighbors=None if static is None else StaticVectors.from_file(static).nearest(words[position], k),
    )


def _bilm_of(index: NeighborIndex, bilm: str | None) -> str:
    """The biLM of a query. Only an index that `index_text` made says which one it is of."""
    if bilm is None:
        bilm = index.about.get("bilm")
        if bilm is None:
            raise ValueError(f"'{index.folder}' does not say which biLM it was made with: name it with --bilm")
        if _is_to_be_downloaded(bilm):
            raise ValueError(
                f"'{index.folder}' was made with the biLM '{bilm}', which is not on this machine, and an index must "
                f"not begin a download: add --bilm {bilm}"
            )
    weights = index.about.get("weights")
    if weights is not None and sha256_of(pretrained_files(bilm)[1]) != weights:
        raise ValueError(
            f"a query must have the biLM of its index, but '{bilm}' has other weights now: name the one that "
            f"'{index.folder}' was made with (--bilm), or build the index again"
        )
    return bilm


def _is_to_be_downloaded(bilm: str) -> bool:
    known = NAMED_BILMS.get(bilm)
    if known is None or known.url is None:
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
