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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Turn:
    """The seconds without the cache and of two passes with it, and its size on disk."""

    without: float
    first_pass: float
    second_pass: float
    n_bytes: int


def run_turn(bilm: Bilm, batches: list[torch.Tensor], dtype: str) -> Turn:
    with TemporaryDirectory() as folder:
        cached = CachedBilm(bilm, LayerCache(folder, dtype=dtype, max_bytes=2**32))
        # The weights are hashed and the file is created once per run, not once per batch.
        cached(batches[0][:1])
        without = seconds(bilm, batches)
        first_pass = seconds(cached, batches)
        second_pass = seconds(cached, batches)
        n_bytes = sum(file.stat().st_blocks * 512 for file in Path(folder).iterdir())
        return Turn(without, first_pass, second_pass, n_bytes)


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

    bilm = Bilm.from_files(arguments.bilm / "options.json", arguments.bilm / "weights.hdf5")
    bilm.requires_grad_(False).eval()
    # Each sentence once, as in a first epoch.
    distinct = [list(words) for words in dict.fromkeys(map(tuple, sentences()))]
    used = distinct[: arguments.batches * arguments.batch_size]
    batches = []
    for start in range(0, len(used), arguments.batch_size):
        batches.append(BYTES.batch(used[start : start + arguments.batch_size]))
    n_tokens = sum(map(len, used))
    print(
        "kept as   first pass / without (min to max)   without / second pass   "
        "ms a batch, second   bytes a token"
    )
    for dtype in ("float32", "float16"):
        turns = [run_turn(bilm, batches, dtype) for _ in range(arguments.repeats + 1)]
        # The first one warms up.
        turns = turns[1:]
        costs = [turn.first_pass / turn.without for turn in turns]
        saving = statistics.median(turn.without / turn.second_pass for turn in turns)
        second_pass = statistics.median(turn.second_pass for turn in turns)
        milliseconds = second_pass / len(batches) * 1000
        n_bytes = turns[-1].n_bytes
        cost = f"{statistics.median(costs):10.2f} ({min(costs):.2f} to {max(costs):.2f})"
        print(
            f"{dtype:7}   {cost}   {saving:27.0f}   "
            f"{milliseconds:24.1f}   {n_bytes / n_tokens:16,.0f}"
        )


if __name__ == "__main__":
    main()
