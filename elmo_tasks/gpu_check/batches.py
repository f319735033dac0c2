"""Sentences, biLMs and comparisons for the parts of the check."""

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import accumulate
from typing import Literal

import torch

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.lstm.fast_cell import PLAIN_PATH
from elmo_tasks.gpu_check.part import SIZES

__all__ = [
    "Precision",
    "layers_of",
    "lowest_cosine",
    "make_bilm",
    "plain_path",
    "ragged",
    "relative_difference",
    "sentences",
]

Precision = Literal["float32", "tf32", "bf16"]


def sentences(lengths: Sequence[int], seed: int = 0) -> list[list[str]]:
    """Sentences of these lengths, of words of one to twelve letters; some of them are frequent."""
    draw, (words, cumulative) = random.Random(seed), _words()
    return [draw.choices(words, cum_weights=cumulative, k=length) for length in lengths]


@cache
def _words() -> tuple[list[str], list[float]]:
    """A thousand words, and the sums of their frequencies, which are those of Zipf's law."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyzäßø", k=draw.randint(1, 12))) for _ in range(1000)]
    return words, list(accumulate(1.0 / rank for rank in range(1, len(words) + 1)))


def ragged(n_sentences: int, longest: int, seed: int = 0) -> list[list[str]]:
    """Sentences of many lengths, one of them empty."""
    draw = random.Random(seed)
    return sentences([0, longest, *(draw.randint(1, longest) for _ in range(n_sentences - 2))][:n_sentences], seed)


def make_bilm(size: str, *, precision: Precision = "float32", seed: int = 0) -> Bilm:
    """A frozen biLM with the same random weights for the same size and seed, on the CPU."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Bilm(SIZES[size], precision=precision).requires_grad_(False)


@torch.no_grad()
def layers_of(bilm: Bilm, batch: list[list[str]]) -> torch.Tensor:
    """The layers of all words of a batch, of shape `(n_layers, n_words, dim)`, on the CPU."""
    output = bilm(batch)
    return torch.stack([layer[output.mask] for layer in output.layers]).cpu()


def relative_difference(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The largest difference, as a share of the largest number, or NaN; 0 for tensors without numbers."""
    if ours.shape != theirs.shape:
        raise ValueError(f"the shapes are {tuple(ours.shape)} and {tuple(theirs.shape)}")
    if not theirs.numel():
        return 0.0
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-12))


def largest_of(differences: Sequence[float]) -> float:
    """The largest, or NaN if one of them is NaN, which Python's `max` may pass over."""
    return float(torch.tensor(differences, dtype=torch.float64).max())


def lowest_cosine(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The lowest cosine of a row of two tensors, or NaN; 1 for tensors without rows."""
    if ours.shape != theirs.shape:
        raise ValueError(f"the shapes are {tuple(ours.shape)} and {tuple(theirs.shape)}")
    if not theirs.numel():
        return 1.0
    return float(torch.cosine_similarity(ours.float(), theirs.float(), -1).min())


@contextmanager
def plain_path() -> Iterator[None]:
    """Without graphs and Triton's kernels in the block."""
    before = os.environ.get(PLAIN_PATH)
    os.environ[PLAIN_PATH] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[PLAIN_PATH]
        else:
            os.environ[PLAIN_PATH] = before
