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
    d_hidden: torch.Tensor,
    d_memory: torch.Tensor,
    clip: float | None,
    *,
    d_products: torch.Tensor,
) -> torch.Tensor:
    """
    The gradient of `cell_forward`, which wrote the `gates`: from the memory after and before the step, and the gradient
    of the halved hidden units and of the memory after it, each of shape `(n_lstms, n_rows, cell_dim)`, to the gradient
    of the memory before it. Fills `d_products`, of shape `(n_lstms, n_rows, 4 * cell_dim)`, with the gradient of the
    products for i, g, f, o; for g, of the product before doubling. Clipped values get no gradient.
    """
    # Shape: (n_lstms, n_rows, cell_dim), each
    input_gate, candidate, forget_gate, output_gate = gates.chunk(4, -1)
    squashed = torch.sigmoid(2.0 * memory)
    d_hidden = d_hidden.to(memory.dtype)
    d_memory = d_memory + d_hidden * output_gate * (2.0 * squashed * (1.0 - squashed))
    if clip is not None:
        d_memory = d_memory * (memory.abs() < clip)
    gradients = (
        d_memory * (2.0 * candidate - 1.0) * input_gate * (1.0 - input_gate),
        d_memory * input_gate * 4.0 * candidate * (1.0 - candidate),
        d_memory * previous_memory * forget_gate * (1.0 - forget_gate),
        d_hidden * (squashed - 0.5) * output_gate * (1.0 - output_gate),
    )
    for d_product, gradient in zip(d_products.chunk(4, -1), gradients, strict=True):
        d_product.copy_(gradient)
    return d_memory * forget_gate
