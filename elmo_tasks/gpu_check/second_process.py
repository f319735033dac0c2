"""The other process of the part `two processes`: it prints the sums of the layers of some batches."""

import json
import sys

import torch

from elmo_tasks.gpu_check.batches import layers_of, make_bilm, ragged

__all__ = ["shape_of"]


def shape_of(size: str, seed: int) -> tuple[int, int]:
    """Sentences of a batch, and words of the longest."""
    return (2 + seed, 4) if size == "tiny" else (10 + seed, 20)


def _main() -> None:
    device, size = sys.argv[1:]
    model = make_bilm(size).to(torch.device(device))
    for _ in range(1 if size == "tiny" else 20):
        sums = [float(layers_of(model, ragged(*shape_of(size, seed), seed)).double().sum()) for seed in range(4)]
    print(json.dumps(sums))


if __name__ == "__main__":
    _main()
