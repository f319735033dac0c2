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
    indexers = [{}, {"elmo": ELMoTokenCharactersIndexer()}, {"elmo": ElmoTokenIndexer()}]
    rounds = [[epochs(some, arguments.file) for some in indexers] for _ in range(arguments.repeats)]
    print(
        "microseconds a token (median): the loader without, what elmo_characters and elmo add, and their ratio"
    )
    for epoch in range(2):
        without, theirs, ours = (
            1e6 / n_tokens * statistics.median(some[which][epoch] for some in rounds)
            for which in range(3)
        )
        ratio = (theirs - without) / (ours - without)
        print(
            f"epoch {epoch + 1}: {without:.2f}   + {theirs - without:.2f}   + {ours - without:.2f}   {ratio:.1f}x; "
            f"the whole loader {1e6 / theirs:,.0f} and {1e6 / ours:,.0f} tokens/s"
        )


if __name__ == "__main__":
    main()
