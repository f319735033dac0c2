"""
One step of the LSTM's memory, and its gradient: everything between the matrix products.

On a CPU, a logistic function costs a sixth of a hyperbolic tangent, so `tanh(x)` is computed as `2 sigmoid(2 x) - 1`.
The factors of 2 cost nothing: the input has doubled products for the candidates, so one logistic function computes all
four gates; the output is half the hidden units, for a doubled projection. Both are exact. With the products `z`:

    i, g', f, o = sigmoid(z_i, 2 z_g, z_f, z_o)
    m_t  = clip(f * m_{t-1} + i * (2 g' - 1))
    u'_t = o * (sigmoid(2 m_t) - 1/2)

The memory accumulates over a sentence, so it is at least float32, even if the products are less precise. So are the
gates: most are near a half, and rounding them would cause the largest error.
"""

from collections.abc import Sequence

import torch

__all__ = ["cell_backward", "cell_forward"]

# On a CPU, the gradient runs over blocks of about this many gates, which stay in the second-level cache.
_GATES_AT_ONCE = 2**16


def cell_forward(
    products: torch.Tensor | Sequence[torch.Tensor],
    memory: torch.Tensor,
    clip: float | None,
    *,
    dtype: torch.dtype,
    gates: torch.Tensor,
) -> torch.Tensor:
    """
    One step of several LSTMs: from the products of each for i, g, f, o (doubled for g), of shape
    `(n_rows, 4 * cell_dim)`, and the memory, of shape `(n_lstms, n_rows, cell_dim)`, which is updated in place and has
    the largest magnitude `clip`, to the hidden units, halved, in the shape of the memory and of type `dtype`. Fills
    `gates`, of shape `(n_lstms, n_rows, 4 * cell_dim)` and the type of the memory, for `cell_backward`.
    """
    for product, gate in zip(products, gates, strict=True):
        torch.sigmoid(product.to(gate.dtype), out=gate)
    # Shape: (n_lstms, n_rows, cell_dim), each
    input_gate, candidate, forget_gate, output_gate = gates.chunk(4, -1)
    memory.mul_(forget_gate).addcmul_(input_gate, candidate - 0.5, value=2.0)
    if clip is not None:
        memory.clamp_(-clip, clip)
    return (2.0 * memory).sigmoid_().sub_(0.5).mul_(output_gate).to(dtype)


def cell_backward(
    gates: torch.Tensor,
    memory: torch.Tensor,
    previous_memory: torch.Tensor,
    d_hidden: torch.Tensor | Sequence[torch.Tensor],
    d_memory: torch.Tensor,
    clip: float | None,
    *,
    d_products: torch.Tensor,
    hidden: torch.Tensor,
) -> None:
    """
    The gradient of `cell_forward`, which wrote the `gates`, in place: from the memory after and before the step, and
    the gradient of the halved hidden units and of the memory after it, each of shape `(n_lstms, n_rows, cell_dim)`,
    turns `d_memory` into the gradient of the memory before the step. Fills `d_products`, of shape
    `(n_lstms, n_rows, 4 * cell_dim)`, with the gradient of the products for i, g, f, o; for g, of the product before
    doubling; it may be the same tensor as `gates`. Fills `hidden` with the halved hidden units, which the forward
    pass does not keep. With one `d_hidden` per LSTM, runs in blocks that fit in the cache. Clipped values get no
    gradient.
    """
    parts = gates, memory, previous_memory, d_hidden, d_memory, d_products, hidden
    if isinstance(d_hidden, torch.Tensor):
        _backward_of_rows(gates, memory, previous_memory, d_hidden, d_memory, d_products, hidden, clip=clip)
        return
    n_rows = max(1, _GATES_AT_ONCE // gates.size(-1))
    for of_lstm in zip(*parts, strict=True):
        for rows in zip(*(part.split(n_rows) for part in of_lstm), strict=True):
            _backward_of_rows(*rows, clip=clip)


def _backward_of_rows(
    gates: torch.Tensor,
    memory: torch.Tensor,
    previous_memory: torch.Tensor,
    d_hidden: torch.Tensor,
    d_memory: torch.Tensor,
    d_products: torch.Tensor,
    hidden: torch.Tensor,
    *,
    clip: float | None,
) -> None:
    """`cell_backward` for some rows, with `d = sigmoid(2 m) - 1/2` and its slope `2 d' = 1/2 - 2 d^2`."""
    gates, d_hidden = gates.to(memory.dtype), d_hidden.to(memory.dtype)
    # Shape: (n_rows, cell_dim), each
    input_gate, candidate, forget_gate, output_gate = gates.chunk(4, -1)
    squashed = (2.0 * memory).sigmoid_().sub_(0.5)
    torch.mul(squashed, output_gate, out=hidden)
    # The derivative of every gate by its product. Shape: (n_rows, 4 * cell_dim)
    slopes = torch.addcmul(gates, gates, gates, value=-1.0)
    d_input, d_candidate, d_forget, d_output = slopes.chunk(4, -1)
    d_output.mul_(squashed).mul_(d_hidden)
    d_memory.add_(squashed.square_().mul_(-2.0).add_(0.5).mul_(output_gate).mul_(d_hidden))
    if clip is not None:
        d_memory.mul_(memory.abs() < clip)
    d_input.mul_((2.0 * candidate).sub_(1.0)).mul_(d_memory)
    d_candidate.mul_(input_gate).mul_(d_memory).mul_(4.0)
    d_forget.mul_(previous_memory).mul_(d_memory)
    d_memory.mul_(forget_gate)
    d_products.copy_(slopes)
