"""
The steps of packed sentences, grouped so that some products are computed for several steps at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

__all__ = ["Products", "StepChunk", "clipped_into", "split_steps", "step_chunks"]

Products = torch.Tensor | Sequence[torch.Tensor]
"""The result of a `StackedLinear`: for each LSTM, of shape `(n_rows, dim)`, stacked or not."""


@dataclass(slots=True)
class StepChunk:
    """
    Successive steps: their numbers, their rows among the packed words, and the number of rows of
    each.
    """

    steps: slice
    rows: slice
    sizes: list[int]

    @property
    def n_rows(self) -> int:
        return sum(self.sizes)

    def rows_of_steps(self) -> Iterator[slice]:
        start = self.rows.start
        for size in self.sizes:
            yield slice(start, start + size)
            start += size


def step_chunks(batch_sizes: Sequence[int], n_rows: int) -> list[StepChunk]:
    """The steps in chunks that have `n_rows` rows or a little more."""
    chunks: list[StepChunk] = []
    first_step = first_row = last_row = 0
    for step, size in enumerate(batch_sizes, 1):
        last_row += size
        if last_row - first_row >= n_rows or step == len(batch_sizes):
            sizes = list(batch_sizes[first_step:step])
            chunks.append(StepChunk(slice(first_step, step), slice(first_row, last_row), sizes))
            first_step = step
            first_row = last_row
    return chunks


def split_steps(products: Products, sizes: list[int]) -> Sequence[Any]:
    """The products of each step, in the form of the products of a chunk."""
    if isinstance(products, torch.Tensor):
        return torch.split(products, sizes, 1)
    steps_of_lstms = [torch.split(rows, sizes) for rows in products]
    return list(zip(*steps_of_lstms, strict=True))


def clipped_into(out: torch.Tensor, products: Products, clip: float | None) -> None:
    """Writes products to `out`, of shape `(n_lstms, n_rows, dim)`, and clips them."""
    if isinstance(products, torch.Tensor):
        _clip(products, clip, out)
        return
    for rows, rows_out in zip(products, out, strict=True):
        _clip(rows, clip, rows_out)


def _clip(values: torch.Tensor, clip: float | None, out: torch.Tensor) -> None:
    if clip is None:
        out.copy_(values)
    else:
        torch.clamp(values, -clip, clip, out=out)
