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

__all__ = ["Neighbor", "NeighborIndex", "Query", "build_index", "marked_text", "marked_word"]

_ABOUT, _SENTENCES = "index.json", "sentences.txt"
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
    of_job = {**settings, "sentences": text_digest("\n".join(lines))}
    folder.parent.mkdir(parents=True, exist_ok=True)
    job = Job(folder, of_job, len(lines), part_sentences, ".npy", force=False, unit="sentences")
    write, join = partial(_write_part, elmo, layers), partial(_join, lines, settings)
    job.run(lines, write, FolderOutput(join, _ABOUT), workers=None, ray=None)
    return NeighborIndex(folder, elmo)


def _write_part(elmo: Elmo, layers: Sequence[Layers], part: Part[str]) -> int:
    arrays = elmo.embed([line.split() for line in part.items], layers="all", progress=False)
    # Shape: (n_all_layers, n_words, dim)
    words = np.concatenate(arrays, axis=1)
    # Shape: (n_layers, n_words, dim)
    vectors = np.stack([unit(_of_layer(words, layer)).astype(np.float16) for layer in layers])
    with atomic_file(part.file) as temporary:
        np.save(temporary, vectors)
    return len(part.items)


def _join(lines: list[str], settings: dict[str, Any], parts: list[Path], folder: Path) -> None:
    for part in parts:
        for layer, vectors in zip(settings["layers"], np.load(part, mmap_mode="r"), strict=True):
            with open(folder / f"vectors-{layer}.bin", "ab") as file:
                file.write(vectors.tobytes())
    (folder / _SENTENCES).write_bytes("".join(f"{line}\n" for line in lines).encode())
    write_json(folder / _ABOUT, settings)


def _sentences_of(folder: Path) -> tuple[list[str], np.ndarray]:
    """
    The complete lines of `sentences.txt`, and the index of the first word of each, then the number
    of all words.
    """
    lines = (folder / _SENTENCES).read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    return lines, np.cumsum([0, *(len(line.split()) for line in lines)])


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
        self._sentences, self._starts = _sentences_of(folder)
        shape = (len(self), elmo.dim)
        self.vectors = {
            layer: np.memmap(folder / f"vectors-{layer}.bin", np.float16, "c", shape=shape)
            for layer in self.layers
        }

    def __len__(self) -> int:
        return int(self._starts[-1])

    def occurrences(self, word: str) -> np.ndarray:
        """The rows of a word, ignoring case."""
        word = word.lower()
        rows: list[int] = []
        for start, line in zip(
            self._starts.tolist(), map(str.lower, self._sentences), strict=False
        ):
            if word in line:
                rows += [start + place for place, each in enumerate(line.split()) if each == word]
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
        layer = self.layers[-1] if layer is None else layer
        arrays = self._elmo.embed([query.words for query in queries], layers=layer, progress=False)
        # Shape: (n_queries, dim)
        targets = unit(
            np.stack([array[query.position] for array, query in zip(arrays, queries, strict=True)])
        )
        found = []
        for start in range(0, len(queries), _QUERIES):
            # Shape: (at most _QUERIES, n_words)
            cosines = _products(self.vectors[layer], targets[start : start + _QUERIES])
            found += [
                self._nearest(*pair, k, same_word)
                for pair in zip(queries[start:], cosines, strict=False)
            ]
        return found

    def _nearest(
        self, query: Query, cosines: np.ndarray, k: int, same_word: bool
    ) -> list[Neighbor]:
        if same_word:
            rows = self.occurrences(query.words[query.position])
            of_word = cosines[rows]
            cosines.fill(-np.inf)
            cosines[rows] = of_word
        # The nearest word of each sentence. Shape: (n_sentences,)
        best = np.maximum.reduceat(cosines, self._starts[:-1])
        # Compared without spaces, because the same sentence may be split into different words.
        seen = {"".join(query.words)}
        found: list[Neighbor] = []
        for number in np.argsort(-best, kind="stable").tolist():
            words, start = self._sentences[number].split(), self._starts[number]
            if len(found) == k or best[number] == -np.inf:
                break
            if (text := "".join(words)) not in seen:
                seen.add(text)
                position = int(cosines[start : start + len(words)].argmax(0))
                found.append(Neighbor(words, position, float(best[number])))
        return found


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
    marked = list(_MARKED.finditer(text))
    if len(marked) != 1:
        raise ValueError(
            f"expected one word in brackets, as in 'They went to the [river] .', got {text!r}"
        )
    before = text[: marked[0].start()].split()
    return Query([*before, marked[0][1], *text[marked[0].end() :].split()], len(before))


def marked_text(query: Query | Neighbor) -> str:
    """The sentence with its word in brackets."""
    words = list(query.words)
    words[query.position] = f"[{words[query.position]}]"
    return " ".join(words)


def _digest(elmo: Elmo) -> str:
    return weights_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()


def _of_layer(array: np.ndarray, layer: Layers) -> np.ndarray:
    """Shape `(n_layers, n_words, dim)` to `(n_words, dim)`."""
    chosen: np.ndarray = (
        array.mean(0) if layer == "mix" else array[-1 if layer == "top" else int(layer)]
    )
    return chosen
