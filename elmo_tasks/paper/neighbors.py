"""The nearest neighbours of a word in its sentence: Table 4 of the paper."""

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from elmo_tasks.bilm.weights import weights_digest
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.jobs import FolderOutput, Job, Part, is_joined
from elmo_tasks.files.json_files import read_json, text_digest, write_json
from elmo_tasks.paper.static_vectors import unit
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.layers import Layers

__all__ = [
    "Neighbor",
    "NeighborIndex",
    "Query",
    "build_index",
    "marked_text",
    "marked_word",
    "marked_words",
]

_ABOUT = "index.json"
_SENTENCES = "sentences.txt"
# Rows that are converted to float32 together: they and their copy fit into the cache of one core.
# With 65,536 rows the same search took five times as long.
_BLOCK = 2048
# Queries per product: their cosines with all words are held in memory.
_QUERIES = 8
_MARKED = re.compile(r"\[([^\[\]\s]+)\]")


class Query(NamedTuple):
    """A sentence, and the position of a word in it."""

    words: list[str]
    position: int

    @property
    def word(self) -> str:
        return self.words[self.position]


class Neighbor(NamedTuple):
    """A word in its sentence, and its cosine with the query."""

    words: list[str]
    position: int
    similarity: float


def build_index(
    elmo: Elmo,
    sentences: Iterable[Sequence[str]],
    folder: Path,
    *,
    layers: Sequence[Layers] = ("top",),
    about: dict[str, Any] | None = None,
    part_sentences: int = 2000,
) -> "NeighborIndex":
    """
    Embeds a text into an index, as a job (`elmo_tasks.files.jobs`): after an interruption, the same
    call with the same sentences computes only the missing parts, each of `part_sentences`
    sentences. `sentences.txt` has one line per sentence, and each `vectors-LAYER.bin` has one
    float16 vector of length 1 per word. `about` is also written to `index.json`.
    """
    if (folder / _ABOUT).exists() and not is_joined(folder):
        raise FileExistsError(f"the index exists: {folder}")
    lines = [" ".join(words) for words in sentences if words]
    settings = {**(about or {}), "layers": list(layers), "dim": elmo.dim, "digest": _digest(elmo)}
    folder.parent.mkdir(parents=True, exist_ok=True)
    job = Job(
        folder,
        settings={**settings, "sentences": text_digest("\n".join(lines))},
        n_items=len(lines),
        part_items=part_sentences,
        suffix=".npy",
        force=False,
        unit="sentences",
    )
    write = partial(_write_part, elmo, layers)
    join = partial(_join, lines, settings)
    job.run(lines, write, FolderOutput(join, mark=_ABOUT), workers=None, ray=None)
    return NeighborIndex(folder, elmo)


def _write_part(elmo: Elmo, layers: Sequence[Layers], part: Part[str]) -> int:
    sentences = [line.split() for line in part.items]
    arrays = elmo.embed(sentences, layers="all", progress=False)
    # Shape: (n_all_layers, n_words, dim)
    all_layers = np.concatenate(arrays, axis=1)
    vectors = []
    for layer in layers:
        # Shape: (n_words, dim)
        layer_vectors = unit(_select_layer(all_layers, layer))
        vectors.append(layer_vectors.astype(np.float16))
    with atomic_file(part.file) as temporary:
        np.save(temporary, np.stack(vectors))
    return len(part.items)


def _join(lines: list[str], settings: dict[str, Any], parts: list[Path], folder: Path) -> None:
    for part in parts:
        # Shape: (n_layers, n_words, dim)
        vectors = np.load(part, mmap_mode="r")
        for layer, layer_vectors in zip(settings["layers"], vectors, strict=True):
            with open(_vector_file(folder, layer), "ab") as file:
                file.write(layer_vectors.tobytes())
    text = "".join(f"{line}\n" for line in lines)
    (folder / _SENTENCES).write_bytes(text.encode())
    write_json(folder / _ABOUT, settings)


def _vector_file(folder: Path, layer: Layers) -> Path:
    return folder / f"vectors-{layer}.bin"


def _complete_lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.split("\n")[:-1]


class NeighborIndex:
    """
    The words of a text and their vectors, which are memory-mapped from disk. The search is exact.
    For more than about ten million words, pass the vectors, which are plain arrays, to a library
    for approximate search.
    """

    def __init__(self, folder: Path, elmo: Elmo) -> None:
        self.about: dict[str, Any] = read_json(folder / _ABOUT)
        if self.about["digest"] != _digest(elmo):
            raise ValueError(
                f"the index was made with a different biLM ({self.about.get('bilm')}): {folder}"
            )
        self.layers: list[Layers] = self.about["layers"]
        self._elmo = elmo
        self._sentences = _complete_lines(folder / _SENTENCES)
        lengths = [len(line.split()) for line in self._sentences]
        # The row of the first word of each sentence, and then the number of all rows.
        self._starts = np.cumsum([0, *lengths])
        shape = (len(self), elmo.dim)
        self.vectors: dict[Layers, np.ndarray] = {}
        for layer in self.layers:
            file = _vector_file(folder, layer)
            self.vectors[layer] = np.memmap(file, np.float16, "c", shape=shape)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def occurrences(self, word: str) -> np.ndarray:
        """The rows of a word, ignoring case."""
        word = word.lower()
        starts = self._starts[:-1].tolist()
        rows: list[int] = []
        for start, sentence in zip(starts, self._sentences, strict=True):
            lowered = sentence.lower()
            # Quicker than to split every sentence.
            if word not in lowered:
                continue
            for row, token in enumerate(lowered.split(), start=start):
                if token == word:
                    rows.append(row)
        return np.array(rows, np.int64)

    def at(self, row: int) -> Query:
        """The sentence of a row, and the position of its word."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return Query(self._sentences[number].split(), int(row - self._starts[number]))

    def search(
        self,
        queries: Sequence[Query],
        k: int = 10,
        *,
        layer: Layers | None = None,
        same_word: bool = False,
    ) -> list[list[Neighbor]]:
        """
        The nearest words for each query, nearest first: at most one per distinct sentence, and none
        from the query's own sentence. `layer` is a layer of the index, by default its last one.
        With `same_word`, only other occurrences of the word are returned.
        """
        if layer is None:
            layer = self.layers[-1]
        sentences = [query.words for query in queries]
        arrays = self._elmo.embed(sentences, layers=layer, progress=False)
        targets = []
        for query, array in zip(queries, arrays, strict=True):
            targets.append(array[query.position])
        # Shape: (n_queries, dim)
        unit_targets = unit(np.stack(targets))
        neighbors = []
        for start in range(0, len(queries), _QUERIES):
            batch = slice(start, start + _QUERIES)
            # Shape: (at most _QUERIES, n_words)
            cosines = _products(self.vectors[layer], unit_targets[batch])
            for query, query_cosines in zip(queries[batch], cosines, strict=True):
                if same_word:
                    self._hide_other_words(query, query_cosines)
                neighbors.append(self._nearest(query, query_cosines, k))
        return neighbors

    def _hide_other_words(self, query: Query, cosines: np.ndarray) -> None:
        """Sets the cosines of all words but the query's to minus infinity."""
        rows = self.occurrences(query.word)
        kept = cosines[rows]
        cosines.fill(-np.inf)
        cosines[rows] = kept

    def _nearest(self, query: Query, cosines: np.ndarray, k: int) -> list[Neighbor]:
        # The nearest word of each sentence. Shape: (n_sentences,)
        best = np.maximum.reduceat(cosines, self._starts[:-1])
        # Compared without spaces, because the same sentence may be split into different words.
        seen = {"".join(query.words)}
        neighbors: list[Neighbor] = []
        for number in np.argsort(-best, kind="stable").tolist():
            if len(neighbors) == k or best[number] == -np.inf:
                break
            words = self._sentences[number].split()
            text = "".join(words)
            if text in seen:
                continue
            seen.add(text)
            start = self._starts[number]
            position = int(cosines[start : start + len(words)].argmax(0))
            neighbors.append(Neighbor(words, position, float(best[number])))
        return neighbors


def _products(matrix: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The products of `targets` with all rows of `matrix`: shape `(n_vectors, n_rows)`."""
    products = np.empty((len(targets), len(matrix)), np.float32)

    def compute(start: int) -> None:
        block = torch.from_numpy(matrix[start : start + _BLOCK]).float()
        products[:, start : start + _BLOCK] = torch.from_numpy(targets) @ block.T

    # Python threads with separate blocks: torch's threads would wait for each other in each of
    # these small products.
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(compute, range(0, len(matrix), _BLOCK)))
    return products


def marked_word(text: str) -> Query:
    """The query for a sentence with one word in brackets, such as `They went to the [river] .`"""
    matches = list(_MARKED.finditer(text))
    if len(matches) != 1:
        raise ValueError(
            f"expected one word in brackets, as in 'They went to the [river] .', got {text!r}"
        )
    match = matches[0]
    before = text[: match.start()].split()
    after = text[match.end() :].split()
    return Query([*before, match[1], *after], position=len(before))


def marked_words(query: Query | Neighbor) -> list[str]:
    """The words of the sentence, with the word in brackets."""
    words = list(query.words)
    words[query.position] = f"[{words[query.position]}]"
    return words


def marked_text(query: Query | Neighbor) -> str:
    """The sentence with its word in brackets."""
    return " ".join(marked_words(query))


def _digest(elmo: Elmo) -> str:
    return weights_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()


def _select_layer(array: np.ndarray, layer: Layers) -> np.ndarray:
    """Shape `(n_layers, n_words, dim)` to `(n_words, dim)`."""
    selected: np.ndarray
    if layer == "mix":
        selected = array.mean(0)
    elif layer == "top":
        selected = array[-1]
    else:
        selected = array[int(layer)]
    return selected
