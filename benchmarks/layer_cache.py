"""
What the layer cache costs in a first pass over sentences and saves in a second:
`python benchmarks/layer_cache.py`.

Passes with and without the cache take turns, so a busy machine slows both; the ratio is what
counts.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from bilm import sentences

from elmo_tasks.bilm import Bilm, BilmOutput, CachedBilm, LayerCache
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.files.shipped import PRETRAINED


def seconds(bilm: Callable[[torch.Tensor], BilmOutput], batches: list[torch.Tensor]) -> float:
    start = time.perf_counter()
    for character_ids in batches:
        bilm(character_ids)
    return time.perf_counter() - start


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bilm",
        type=Path,
        default=PRETRAINED / "small-open",
        help="folder of options.json and weights.hdf5",
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=64)
    arguments = parser.parse_args()

    bilm = (
        Bilm.from_files(arguments.bilm / "options.json", arguments.bilm / "weights.hdf5")
        .requires_grad_(False)
        .eval()
    )
    # Each sentence once, as in a first epoch.
    distinct = [list(words) for words in dict.fromkeys(map(tuple, sentences()))]
    used = distinct[: arguments.batches * arguments.batch_size]
    batches = [
        BYTES.batch(used[start : start + arguments.batch_size])
        for start in range(0, len(used), arguments.batch_size)
    ]
    n_tokens = sum(map(len, used))
    print(
        "kept as   first pass / without (min to max)   without / second pass   ms a batch, second   bytes a token"
    )
    for dtype in ("float32", "float16"):
        times = []
        for _ in range(arguments.repeats + 1):
            with TemporaryDirectory() as folder:
                cached = CachedBilm(bilm, LayerCache(folder, dtype=dtype, max_bytes=2**32))
                # The weights are hashed and the file is created once per run, not once per batch.
                cached(batches[0][:1])
                times.append(
                    (seconds(bilm, batches), seconds(cached, batches), seconds(cached, batches))
                )
                n_bytes = sum(file.stat().st_blocks * 512 for file in Path(folder).iterdir())
        times = times[1:]  # The first round warms up.
        first = [first / without for without, first, _ in times]
        second = statistics.median(without / second for without, _, second in times)
        milliseconds = statistics.median(second for _, _, second in times) / len(batches) * 1000
        print(
            f"{dtype:7}   {statistics.median(first):10.2f} ({min(first):.2f} to {max(first):.2f})   {second:27.0f}   "
            f"{milliseconds:24.1f}   {n_bytes / n_tokens:16,.0f}"
        )


if __name__ == "__main__":
    main()
