"""
The directions of a layer, which run in one loop: tensors of shape `(n_directions, n_words, dim)`.

The backward direction reads each sentence from its end to its begin, so that at each step both directions have the same
number of sentences. `words` are packed in the order of the sentences and hold the directions next to each other, in
shape `(n_words, n_directions * dim)`, as encoders return them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from elmo_tasks.modules.recurrent.packed_batch import PackedBatch

__all__ = [
    "GradientsWithoutGraph",
    "directions_of",
    "first_rows",
    "gradient_of_words",
    "gradients_of_parameters",
    "inputs_of",
    "parameters_by_kind",
    "previous_of",
    "words_of",
    "write_products",
]


def inputs_of(words: torch.Tensor, n_directions: int, batch: PackedBatch) -> list[torch.Tensor]:
    """For each direction all words in its order, of shape `(n_words, dim)`."""
    return [words, words.index_select(0, batch.mirrored)][:n_directions]


def directions_of(words: torch.Tensor, n_directions: int, batch: PackedBatch) -> torch.Tensor:
    """A copy in the order of each direction, of shape `(n_directions, n_words, dim)`."""
    if n_directions == 1:
        return words.unsqueeze(0).clone()
    forward, backward = words.chunk(2, -1)
    return torch.stack([forward, backward.index_select(0, batch.mirrored)])


def words_of(outputs: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
    """A copy of shape `(n_words, n_directions * dim)`: `directions_of` undone."""
    if len(outputs) == 1:
        return outputs[0].clone()
    return torch.cat([outputs[0], outputs[1].index_select(0, batch.mirrored)], -1)


def gradient_of_words(
    d_products: torch.Tensor, input_weights: Sequence[torch.Tensor], batch: PackedBatch
) -> torch.Tensor:
    """
    The gradient of `words`, of shape `(n_words, dim)` and of the type of the weights, from that of the products of
    `inputs_of` with them, which is multiplied in its own type.
    """
    # Shape: (n_words, dim), each
    forward, *backward = (
        (part @ weight.to(part.dtype)).to(weight.dtype) for part, weight in zip(d_products, input_weights, strict=True)
    )
    return backward[0].index_select(0, batch.mirrored).add_(forward) if backward else forward


def write_products(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor) -> None:
    """
    Writes `x W^T + b`, of shape `(n_rows, output_dim)`: the product is computed in the type of the rows, the sum in
    that of the weight and of `out`.
    """
    if rows.dtype != out.dtype:
        out.copy_(torch.nn.functional.linear(rows, weight.to(rows.dtype)))
        if bias is not None:
            out.add_(bias)
    elif bias is None:
        torch.mm(rows, weight.t(), out=out)
    else:
        torch.addmm(bias, rows, weight.t(), out=out)


def previous_of(outputs: torch.Tensor, batch: PackedBatch) -> torch.Tensor:
    """What each direction has at the word before: zero at the first words."""
    n_first = batch.n_sentences
    first = outputs.new_zeros(len(outputs), n_first, outputs.size(-1))
    return torch.cat([first, outputs.index_select(1, batch.before[n_first:])], 1)


def parameters_by_kind(parameters: Sequence[torch.Tensor], n_directions: int) -> list[Sequence[torch.Tensor]]:
    """`weight_ih` of each direction, `weight_hh` of each, and so on, from torch's order by direction."""
    n_kinds = len(parameters) // n_directions
    return [parameters[kind::n_kinds] for kind in range(n_kinds)]


def gradients_of_parameters(
    *by_kind: Iterable[torch.Tensor], n_directions: int, n_parameters: int
) -> list[torch.Tensor]:
    """The inverse of `parameters_by_kind`; the last kinds are omitted if there are fewer parameters."""
    # The number of parameters of a direction: fewer than kinds if it has no biases.
    n_kinds = n_parameters // n_directions
    return [gradient for direction in zip(*by_kind[:n_kinds], strict=True) for gradient in direction]


def first_rows(tensor: torch.Tensor, n_rows: int) -> torch.Tensor:
    """The first rows of shape `(n_directions, n, dim)`. It is called in loops, in which a slice takes a while."""
    return tensor if tensor.size(1) == n_rows else tensor[:, :n_rows]


class GradientsWithoutGraph(torch.autograd.Function):
    """
    Refuses to differentiate gradients once more: a gradient that is computed by hand has no graph of its own, and
    without this a second derivative would silently lack a part.

    `GradientsWithoutGraph.apply(gradients, *tensors)` returns `gradients`, a sequence of tensors and `None`, which seem
    to be computed from `tensors`.
    """

    @staticmethod
    def forward(
        ctx: Any, gradients: Sequence[torch.Tensor | None], *_: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        return tuple(gradients)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> None:
        raise RuntimeError(
            "elmo_lstm and elmo_gru have no second derivatives on a CPU, but a gradient was differentiated again: use "
            "AllenNLP's 'lstm' or 'gru', which load the same checkpoints"
        )
