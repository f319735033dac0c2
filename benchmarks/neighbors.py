"""
What an index of words in context costs: `python benchmarks/neighbors.py --text TEXT --tokens 1000000`.

Builds one from the first sentences of a text, and asks it for the neighbours of its own words. It is thrown away,
unless `--folder` names a place for it, where `allennlp elmo-neighbors query` can be asked too.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from bilm import FIXTURES

from elmo_tasks.analysis import build_index
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--text", default=str(FIXTURES / "lm" / "train.txt"), help="tokenised text, a sentence a line")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--bilm", default="small-open")
    parser.add_argument("--dtype", choices=("float16", "float32"), default="float16")
    parser.add_argument("--precision", choices=("float32", "tf32", "bf16"), default="float32")
    parser.add_argument("--folder", type=Path, help="a new folder to keep the index in")
    parser.add_argument("--queries", type=int, default=20)
    arguments = parser.parse_args()

    elmo = Elmo.from_pretrained(arguments.bilm, precision=arguments.precision)
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
        embedding, searching = [], []
        step = max(1, len(sentences) // arguments.queries)
        for words in islice(sentences, 0, None, step):
            start = time.perf_counter()
            (vectors,) = elmo.embed([words], layers="top")
            embedded = time.perf_counter()
            index.search(vectors[len(words) // 2], 10, without=words)
            embedding.append(embedded - start)
            searching.append(time.perf_counter() - embedded)
        for name, times in (("sentence embedded", embedding), ("exact search", searching)):
            print(
                f"{name}: {1000 * statistics.median(times):,.1f} ms (median of {len(times)}, "
                f"{1000 * min(times):,.1f} to {1000 * max(times):,.1f})"
            )


if __name__ == "__main__":
    main()
