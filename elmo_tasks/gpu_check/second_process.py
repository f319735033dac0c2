"""The other process of the part `two processes`: it prints the sums of the layers of some batches."""

import json
import sys

import torch

from elmo_tasks.gpu_check.batches import layers_of, make_bilm, ragged

__all__: list[str] = []


def _main() -> None:
    device, size = sys.argv[1:]
    model = make_bilm(size).to(torch.device(device))
    for _ in range(20):
        sums = [float(layers_of(model, ragged(10 + seed, 20, seed)).double().sum()) for seed in range(4)]
    print(json.dumps(sums))


if __name__ == "__main__":
    _main()
