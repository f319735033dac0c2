"""
Speed and memory of `Elmo` and of AllenNLP's `_ElmoBiLm` on proteins, with one biLM of random weights:
`python benchmarks/proteins.py`.

The biLM has SeqVec's shape (that of the paper's), its widths divided by `--scale`; sequences are random, up to
`--longest` residues long. Both run by turns in one process, and a time is the shortest of all turns; memory is how much
a process of its own grows at most (Linux). AllenNLP gets batches as SeqVec makes them: sequences of similar length, up
to 15,000 residues or one that is longer than half of that.
"""

import argparse
import multiprocessing
import random
import resource
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from elmo_tasks import Elmo
from elmo_tasks.bilm import Bilm, BilmOptions

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
BATCH = 15_000


def options_of(scale: int) -> BilmOptions:
    """SeqVec's, with widths divided."""
    paper = BilmOptions()
    return BilmOptions(
        cell_dim=paper.cell_dim // scale,
        projection_dim=paper.projection_dim // scale,
        filters=tuple((width, max(1, number // scale)) for width, number in paper.filters),
    )


def sequences_of(number: int, longest: int) -> list[list[str]]:
    """Random sequences, the longest among them, in ascending order of length."""
    chosen = random.Random(0)
    lengths = sorted([longest, *(chosen.randint(50, longest) for _ in range(number - 1))])
    return [chosen.choices(RESIDUES, k=length) for length in lengths]


def batches_of(sequences: list[list[str]]) -> list[list[list[str]]]:
    """As SeqVec makes them."""
    batches: list[list[list[str]]] = [[]]
    for sequence in sequences:
        batches[-1].append(sequence)
        if sum(map(len, batches[-1])) > BATCH or len(sequence) > BATCH / 2:
            batches.append([])
    return [batch for batch in batches if batch]


def ours(files: tuple[str, str], sequences: list[list[str]]) -> Callable[[], list[torch.Tensor]]:
    """Layers summed, mean over the residues."""
    elmo = Elmo.from_files(*files, device="cpu")
    return lambda: elmo.embed(sequences, gamma=float(elmo.n_layers), pool="mean", output="torch", progress=False)


def allennlps(files: tuple[str, str], sequences: list[list[str]]) -> Callable[[], list[torch.Tensor]]:
    """The same by AllenNLP."""
    from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids
    from allennlp.nn.util import remove_sentence_boundaries

    bilm = _ElmoBiLm(*files)

    @torch.no_grad()
    def run() -> list[torch.Tensor]:
        # It carries its state from batch to batch; ours has none.
        bilm._elmo_lstm._states = None
        vectors = []
        for batch in batches_of(sequences):
            output = bilm(batch_to_ids(batch))
            layers = [remove_sentence_boundaries(layer, output["mask"])[0] for layer in output["activations"]]
            for row, sequence in enumerate(batch):
                vectors.append(sum(layer[row, : len(sequence)] for layer in layers).mean(0))
        return vectors

    return run


def peak(make: Callable[..., Callable[[], object]], files: tuple[str, str], sequences: list[list[str]]) -> int:
    """How much this process grows at most while it runs, in MB."""
    run = make(files, sequences)
    is_done, sizes = threading.Event(), [_resident()]

    def watch() -> None:
        while not is_done.wait(0.02):
            sizes.append(_resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    is_done.set()
    watcher.join()
    return (max(sizes) - sizes[0]) // 2**20


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def main() -> None:
    """Prints a line for each side."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=12)
    parser.add_argument("--longest", type=int, default=3000)
    parser.add_argument("--scale", type=int, default=8)
    parser.add_argument("--turns", type=int, default=2)
    arguments = parser.parse_args()
    sequences = sequences_of(arguments.sequences, arguments.longest)
    n_residues = sum(map(len, sequences))
    with tempfile.TemporaryDirectory() as folder:
        files = str(Path(folder, "options.json")), str(Path(folder, "weights.hdf5"))
        Bilm(options_of(arguments.scale)).save(*files)
        sides = {"AllenNLP": allennlps, "elmo_tasks": ours}
        runs = {name: make(files, sequences) for name, make in sides.items()}
        times: dict[str, list[float]] = {name: [] for name in sides}
        found = {}
        for _ in range(arguments.turns):
            for name, run in runs.items():
                start = time.perf_counter()
                found[name] = run()
                times[name].append(time.perf_counter() - start)
        with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            peaks = {name: pool.apply(partial(peak, make, files, sequences)) for name, make in sides.items()}
    print(
        f"{len(sequences)} proteins, {n_residues:,} residues, the longest {arguments.longest}; "
        f"widths / {arguments.scale}"
    )
    for name, seconds in times.items():
        print(f"{name:10} {n_residues / min(seconds):8,.0f} residues/s, {peaks[name]:6,} MB")
    print(f"ratio of the speeds: {min(times['AllenNLP']) / min(times['elmo_tasks']):.2f}")
    # The first batch of both starts from the zero state; of later ones AllenNLP's does, too, with the state cleared.
    difference = max(float((a - b).abs().max()) for a, b in zip(*found.values(), strict=True))
    print(f"largest difference: {difference:.1e}")


if __name__ == "__main__":
    main()
