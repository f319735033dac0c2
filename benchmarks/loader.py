"""
Speed of data loading alone, with our token indexer and AllenNLP's `elmo_characters`:
`python benchmarks/loader.py`.

Both take turns to make batches of 64 of the same sentences with AllenNLP's data loader, without a
model: a first epoch, which also indexes, and a second. "Without" is the loader's own time, without
characters for ELMo.
"""

import argparse
import logging
import statistics
import time
from pathlib import Path

from allennlp.data import Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.data.samplers import BucketBatchSampler
from allennlp.data.token_indexers import (
    ELMoTokenCharactersIndexer,
    SingleIdTokenIndexer,
    TokenIndexer,
)

from elmo_tasks.data import ElmoTokenIndexer, NerReader
from elmo_tasks.files.shipped import FIXTURES


def epochs(indexers: dict[str, TokenIndexer], file: Path) -> list[float]:
    """Seconds of two epochs."""
    reader = NerReader(token_indexers={"tokens": SingleIdTokenIndexer(), **indexers})
    loader = MultiProcessDataLoader(
        reader, file, batch_sampler=BucketBatchSampler(batch_size=64), quiet=True
    )
    loader.index_with(Vocabulary.from_instances(loader.iter_instances()))
    times = []
    for _ in range(2):
        start = time.perf_counter()
        for _ in loader:
            pass
        times.append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--file", type=Path, default=FIXTURES / "ner" / "train.txt", help="in CoNLL-2003's format"
    )
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    logging.disable(logging.INFO)

    n_tokens = sum(len(instance["tokens"]) for instance in NerReader().read(arguments.file))
    indexers: dict[str, dict[str, TokenIndexer]] = {
        "without": {},
        "elmo_characters": {"elmo": ELMoTokenCharactersIndexer()},
        "elmo": {"elmo": ElmoTokenIndexer()},
    }
    # For each indexer, the seconds of two epochs in each turn.
    times: dict[str, list[list[float]]] = {name: [] for name in indexers}
    for _ in range(arguments.repeats):
        for name, token_indexers in indexers.items():
            times[name].append(epochs(token_indexers, arguments.file))
    print(
        "microseconds a token (median): "
        "the loader without, what elmo_characters and elmo add, and their ratio"
    )
    for epoch in range(2):
        microseconds = {}
        for name, turns in times.items():
            median = statistics.median(turn[epoch] for turn in turns)
            microseconds[name] = 1e6 * median / n_tokens
        without = microseconds["without"]
        theirs = microseconds["elmo_characters"]
        ours = microseconds["elmo"]
        added_by_theirs = theirs - without
        added_by_ours = ours - without
        print(
            f"epoch {epoch + 1}: {without:.2f}   + {added_by_theirs:.2f}   + {added_by_ours:.2f}   "
            f"{added_by_theirs / added_by_ours:.1f}x; "
            f"the whole loader {1e6 / theirs:,.0f} and {1e6 / ours:,.0f} tokens/s"
        )


if __name__ == "__main__":
    main()
