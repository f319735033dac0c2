"""The nearest neighbours of a word in its sentence: Table 4 of the paper."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from elmo_tasks.bilm.lstm.frozen import bilm_digest
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.layers import Layers

__all__ = ["Neighbor", "NeighborIndex", "Query", "build_index", "marked_word"]

_ABOUT, _SENTENCES = "index.json", "sentences.txt"
# Rows that are brought into float32 at once: they and their copy fit into the cache of a core. With 65,536 the same
# search took five times as long.
_BLOCK = 2048
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
) -> "NeighborIndex":
    """
    Embeds a text into an index: a line of `sentences.txt` for each sentence, and a row of float16 in each
    `vectors-LAYER.bin` for each word, of length 1. The same call, with the same sentences, resumes one that was
    interrupted. `about` is also written into `index.json`, and compared when an index is resumed.
    """
    settings = {**(about or {}), "layers": list(layers), "dim": elmo.dim, "digest": _digest(elmo)}
    part = folder / "part.json"
    if (folder / _ABOUT).exists():
        raise FileExistsError(f"the index exists: {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    if part.exists() and read_json(part) != settings:
        raise ValueError(f"{folder} has an interrupted index of a different biLM, text or layer: remove it")
    write_json(part, settings)
    names = [_SENTENCES, *(f"vectors-{layer}.bin" for layer in layers)]
    for name in names:
        (folder / name).touch()
    done, sizes = _whole_sentences(folder, names, 2 * elmo.dim)
    waiting: deque[str] = deque()

    def words() -> Iterator[list[str]]:
        for sentence in islice(sentences, done, None):
            waiting.append(" ".join(sentence) + "\n")
            yield list(sentence)

    with ExitStack() as stack:
        files = [stack.enter_context(open(folder / name, "r+b")) for name in names]
        for file, size in zip(files, sizes, strict=True):
            file.truncate(size)
            file.seek(size)
        bar = stack.enter_context(tqdm(initial=done, unit="sentence", disable=None))
        for array in elmo.embed_iter(words(), layers="all", progress=False):
            files[0].write(waiting.popleft().encode())
            for file, layer in zip(files[1:], layers, strict=True):
                file.write(_unit(_of_layer(array, layer)).astype(np.float16).tobytes())
            bar.update()
    part.rename(folder / _ABOUT)
    return NeighborIndex(folder)


def _whole_sentences(folder: Path, names: Sequence[str], bytes_per_word: int) -> tuple[int, list[int]]:
    """How many sentences all files have, and the sizes of the files up to there."""
    n_words = min((folder / name).stat().st_size for name in names[1:]) // bytes_per_word
    n_sentences = n_bytes = n_found = 0
    with open(folder / names[0], "rb") as file:
        for line in file:
            n_of_line = len(line.split())
            if not line.endswith(b"\n") or n_found + n_of_line > n_words:
                break
            n_sentences, n_bytes, n_found = n_sentences + 1, n_bytes + len(line), n_found + n_of_line
    return n_sentences, [n_bytes, *[n_found * bytes_per_word] * (len(names) - 1)]


class NeighborIndex:
    """
    The words of a text with their vectors, which stay on disk, mapped into memory. The search is exact. The files are
    plain: for more than some ten million words, give the vectors to a library for approximate search.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / _ABOUT).is_file():
            raise FileNotFoundError(f"expected a finished index with {_ABOUT}: {folder}")
        self.about: dict[str, Any] = read_json(folder / _ABOUT)
        self.layers: list[Layers] = self.about["layers"]
        self._sentences = (folder / _SENTENCES).read_text(encoding="utf-8").split("\n")[:-1]
        # The number of the first word of each sentence, and of all words.
        self._starts = np.cumsum([0, *(len(line.split()) for line in self._sentences)])
        shape = (len(self), self.about["dim"])
        self.vectors = {
            layer: np.memmap(folder / f"vectors-{layer}.bin", np.float16, "c", shape=shape) for layer in self.layers
        }

    def __len__(self) -> int:
        return int(self._starts[-1])

    def check_bilm(self, elmo: Elmo) -> None:
        """Vectors from a different biLM would give meaningless neighbours."""
        if self.about["digest"] != _digest(elmo):
            raise ValueError(f"the index was made with a different biLM ({self.about.get('bilm')})")

    def occurrences(self, word: str) -> np.ndarray:
        """The rows of a word, in any case."""
        words = (each for line in self._sentences for each in line.lower().split())
        return np.flatnonzero(np.fromiter((each == word.lower() for each in words), bool, len(self)))

    def at(self, row: int) -> Query:
        """The sentence of a row, and the position of its word."""
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return Query(self._sentences[number].split(), int(row - self._starts[number]))

    def search(
        self,
        elmo: Elmo,
        queries: Sequence[Query],
        k: int = 10,
        *,
        layer: Layers | None = None,
        same_word: bool = False,
    ) -> list[list[Neighbor]]:
        """
        The nearest words of each query under the biLM of the index, the nearest first: one of each sentence, of equal
        sentences only one, and none of the query's own sentence. `layer` is one of the index, by default its last one;
        with `same_word`, only other occurrences of the word count.
        """
        layer = self.layers[-1] if layer is None else layer
        arrays = elmo.embed([query.words for query in queries], layers=layer, progress=False)
        # Shape: (n_queries, dim)
        targets = _unit(np.stack([array[query.position] for array, query in zip(arrays, queries, strict=True)]))
        found = []
        for query, target in zip(queries, targets, strict=True):
            rows = self.occurrences(query.words[query.position]) if same_word else None
            # Shape: (n_rows,)
            cosines = _products(self.vectors[layer], target, rows)
            n_best = 4 * k + 16
            while True:
                best, numbers = cosines.topk(min(n_best, len(cosines)))
                nearest = numbers.numpy() if rows is None else rows[numbers.numpy()]
                neighbors = self._distinct(best.numpy(), nearest, query)[:k]
                if len(neighbors) == k or n_best >= len(cosines):
                    break
                # Many of the best are in the same sentences.
                n_best *= 8
            found.append(neighbors)
        return found

    def _distinct(self, cosines: np.ndarray, rows: np.ndarray, query: Query) -> list[Neighbor]:
        # Sentences are compared as texts: the same one may be divided into other words.
        seen, found = {"", "".join(query.words)}, []
        for cosine, row in zip(cosines.tolist(), rows.tolist(), strict=True):
            words, position = self.at(row)
            if (text := "".join(words)) not in seen:
                seen.add(text)
                found.append(Neighbor(words, position, cosine))
        return found


def _products(matrix: np.ndarray, target: np.ndarray, rows: np.ndarray | None) -> torch.Tensor:
    """The products of a vector with all rows of a matrix, or with these: shape `(n_rows,)`."""
    products = torch.empty(len(matrix) if rows is None else len(rows))
    of_target = torch.from_numpy(target)

    def compute(start: int) -> None:
        part = slice(start, start + _BLOCK)
        products[part] = torch.from_numpy(matrix[part if rows is None else rows[part]]).float() @ of_target

    # Threads of our own, each with its own blocks: torch's would wait for each other in each of these small products.
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(compute, range(0, len(products), _BLOCK)))
    finally:
        torch.set_num_threads(n_threads)
    return products


def marked_word(text: str) -> Query:
    """The query of a sentence with one word in brackets, as `They went to the [river] .`"""
    marked = list(_MARKED.finditer(text))
    if len(marked) != 1:
        raise ValueError(f"expected one word in brackets, as in 'They went to the [river] .', got {text!r}")
    before = text[: marked[0].start()].split()
    return Query([*before, marked[0][1], *text[marked[0].end() :].split()], len(before))


def _digest(elmo: Elmo) -> str:
    return bilm_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()


def _of_layer(array: np.ndarray, layer: Layers) -> np.ndarray:
    """Shape `(n_layers, n_words, dim)` to `(n_words, dim)`."""
    chosen: np.ndarray = array.mean(0) if layer == "mix" else array[-1 if layer == "top" else int(layer)]
    return chosen


def _unit(vectors: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
