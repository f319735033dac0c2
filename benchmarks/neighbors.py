"""
What an index of words in context costs: `python benchmarks/neighbors.py --text TEXT --tokens 1000000`.

Builds one from the first sentences of a text, or of random vectors (`--random`), and asks it for the neighbours of its
own words: one at a time with usearch and without, and many at once. `--graph` builds the graph for approximate search
too. The index is thrown away, unless `--folder` names a place for it.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from bilm import FIXTURES

from elmo_tasks.analysis import NeighborIndex, build_graph, build_index
from elmo_tasks.analysis.neighbors import exact
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.word_rows import BYTES
from elmo_tasks.data import LmText
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.pretrained import pretrained_files


def first_sentences(text: LmText, n_tokens: int) -> Iterator[list[str]]:
    seen = 0
    for words in text:
        if seen >= n_tokens:
            return
        seen += len(words)
        yield words


class RandomVectors:
    """In the place of `Elmo`: words at random places, 250 in a sentence."""

    dim, n_layers, n_words, n_blocks = 256, 3, 250, 64

    def __init__(self) -> None:
        shape = (self.n_blocks, self.n_words, self.dim)
        self.bilm = SimpleNamespace(word_rows=BYTES, options=BilmOptions(), precision="float32", state_dict=dict)
        self._blocks = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)

    def embed_iter(self, sentences: Iterable[list[str]], **options: Any) -> Iterator[np.ndarray]:
        for number, words in enumerate(sentences):
            # Other places in each round: turned by a few axes.
            yield np.roll(self._blocks[number % self.n_blocks], number // self.n_blocks, axis=1)[: len(words)]

    def embed(self, sentences: list[list[str]], **options: Any) -> list[np.ndarray]:
        return list(self.embed_iter(sentences))

    def sentences(self, n_tokens: int) -> list[list[str]]:
        return [[f"word{number}"] * self.n_words for number in range(n_tokens // self.n_words)]


def median_of(times: list[float]) -> str:
    low, high = 1000 * min(times), 1000 * max(times)
    return f"{1000 * statistics.median(times):,.1f} ms (median of {len(times)}, {low:,.1f} to {high:,.1f})"


def timed_searches(index: NeighborIndex, vectors: np.ndarray, **options: Any) -> list[float]:
    times = []
    for vector in vectors:
        start = time.perf_counter()
        index.search(vector, 10, **options)
        times.append(time.perf_counter() - start)
    return times


def measure(index: NeighborIndex, elmo: Any, queries: list[list[str]], with_graph: bool) -> None:
    embedding, vectors = [], []
    for words in queries:
        start = time.perf_counter()
        (array,) = elmo.embed([words], layers="top")
        embedding.append(time.perf_counter() - start)
        vectors.append(array[len(words) // 2])
    stacked = np.stack(vectors)
    print(f"sentence embedded: {median_of(embedding)}")
    for name, has_library in (("with usearch", exact.has_library()), ("without", False)):
        with patch.object(exact, "has_library", lambda found=has_library: found):
            index.search(vectors[0])
            print(f"exact search, {name if has_library or name == 'without' else 'usearch is missing'}: ", end="")
            print(median_of(timed_searches(index, stacked)))
    start = time.perf_counter()
    index.search_many(stacked, 10)
    print(f"exact search, {len(vectors)} at once: {1000 * (time.perf_counter() - start) / len(vectors):,.1f} ms each")
    if with_graph:
        start, cpu = time.perf_counter(), time.process_time()
        graph = build_graph(index)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        print(f"graph: {seconds:.1f} s ({cpu:.1f} s of CPU), {graph.n_bytes / len(index):,.0f} bytes a word, ", end="")
        print(f"recall {graph.recall:.3f}; search: {median_of(timed_searches(index, stacked, approximate=True))}")
    print(f"memory: at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB, files in it included")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--text", default=str(FIXTURES / "lm" / "train.txt"), help="tokenised text, a sentence a line")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--bilm", default="small-open")
    parser.add_argument("--dtype", choices=("float16", "float32", "int8"), default="float16")
    parser.add_argument("--precision", choices=("float32", "tf32", "bf16"), default="float32")
    parser.add_argument("--folder", type=Path, help="a new folder to keep the index in")
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--random", action="store_true", help="random vectors in place of a text and a biLM")
    parser.add_argument("--graph", action="store_true", help="build the graph too")
    arguments = parser.parse_args()

    elmo: Any = (
        RandomVectors() if arguments.random else Elmo.from_pretrained(arguments.bilm, precision=arguments.precision)
    )
    if arguments.random:
        sentences = elmo.sentences(arguments.tokens)
    else:
        sentences = list(first_sentences(LmText(arguments.text), arguments.tokens))
    elmo.embed(sentences[:8])  # Warms up.
    if arguments.folder is not None and arguments.folder.with_name(f"{arguments.folder.name}.part").exists():
        parser.error(f"{arguments.folder}.part is half an index, which would take less time: remove it")
    about = {
        "bilm": arguments.bilm,
        "weights": sha256_of(pretrained_files(arguments.bilm)[1]),
        "corpus": arguments.text,
    }
    with TemporaryDirectory() as folder:
        start, cpu = time.perf_counter(), time.process_time()
        index = build_index(
            elmo, sentences, arguments.folder or Path(folder, "index"), dtype=arguments.dtype, about=about
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        print(f"built: {len(index):,} words of {index.n_sentences:,} sentences in {seconds:.1f} s ({cpu:.1f} s of CPU)")
        print(f"size: {index.n_bytes / 1e6:,.1f} MB, {index.n_bytes / len(index):,.0f} bytes a word")
        measure(index, elmo, sentences[:: max(1, len(sentences) // arguments.queries)], arguments.graph)


if __name__ == "__main__":
    main()
