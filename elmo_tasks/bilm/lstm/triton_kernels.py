"""
The step of `LstmCell`, with its gradient, as one Triton kernel in each direction.

Triton is optional, so only `triton_steps.py` imports this module. A program computes `block` units
of one row of an LSTM; `*_stride` is the distance between LSTMs in each tensor, in elements. Rows
are contiguous: `cell_dim` units, or four blocks of them (i, f, g, o).
"""

# Triton's functions have no types.
# mypy: ignore-errors

import triton
import triton.language as tl

__all__ = ["backward", "forward"]


@triton.jit
def forward(
    products, memory, hidden, gates, memories,
    products_stride, memory_stride, hidden_stride, gates_stride, memories_stride,
    bound, cell_dim: tl.constexpr, is_clipped: tl.constexpr, is_kept: tl.constexpr,
    block: tl.constexpr,
):  # fmt: skip
    """Updates `memory`, fills `hidden`, and if `is_kept` also `gates` and `memories`."""
    row, lstm = tl.program_id(0), tl.program_id(1)
    unit = tl.program_id(2) * block + tl.arange(0, block)
    exists = unit < cell_dim
    z = products + lstm * products_stride + row * 4 * cell_dim + unit
    i = tl.sigmoid(tl.load(z, exists, 0.0).to(tl.float32))
    f = tl.sigmoid(tl.load(z + cell_dim, exists, 0.0).to(tl.float32))
    g = tl.sigmoid(tl.load(z + 2 * cell_dim, exists, 0.0).to(tl.float32)) - 0.5
    o = tl.sigmoid(tl.load(z + 3 * cell_dim, exists, 0.0).to(tl.float32))
    at = memory + lstm * memory_stride + row * cell_dim + unit
    m = tl.load(at, exists, 0.0) * f + 4.0 * i * g
    if is_clipped:
        m = tl.minimum(tl.maximum(m, -bound), bound)
    tl.store(at, m, exists)
    h_at = hidden + lstm * hidden_stride + row * cell_dim + unit
    tl.store(h_at, o * (tl.sigmoid(m) - 0.5), exists)
    if is_kept:
        to = gates + lstm * gates_stride + row * 4 * cell_dim + unit
        tl.store(to, i, exists)
        tl.store(to + cell_dim, f, exists)
        tl.store(to + 2 * cell_dim, g, exists)
        tl.store(to + 3 * cell_dim, o, exists)
        tl.store(memories + lstm * memories_stride + row * cell_dim + unit, m, exists)


@triton.jit
def backward(
    gates, memory, before, d_hidden, d_memory, d_products, hidden,
    gates_stride, memory_stride, before_stride, d_hidden_stride, d_memory_stride,
    d_products_stride, hidden_stride,
    bound, cell_dim: tl.constexpr, is_clipped: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """
    Turns `d_memory` into the gradient of the memory before the step, and fills `d_products` and
    `hidden`.
    """
    row, lstm = tl.program_id(0), tl.program_id(1)
    unit = tl.program_id(2) * block + tl.arange(0, block)
    exists = unit < cell_dim
    at = gates + lstm * gates_stride + row * 4 * cell_dim + unit
    i = tl.load(at, exists, 0.0).to(tl.float32)
    f = tl.load(at + cell_dim, exists, 0.0).to(tl.float32)
    g = tl.load(at + 2 * cell_dim, exists, 0.0).to(tl.float32)
    o = tl.load(at + 3 * cell_dim, exists, 0.0).to(tl.float32)
    m = tl.load(memory + lstm * memory_stride + row * cell_dim + unit, exists, 0.0)
    m_before = tl.load(before + lstm * before_stride + row * cell_dim + unit, exists, 0.0)
    d_h_at = d_hidden + lstm * d_hidden_stride + row * cell_dim + unit
    d_h = tl.load(d_h_at, exists, 0.0).to(tl.float32)
    q = tl.sigmoid(m) - 0.5
    d_at = d_memory + lstm * d_memory_stride + row * cell_dim + unit
    d_m = tl.load(d_at, exists, 0.0) + d_h * (0.25 - q * q) * o
    if is_clipped:
        d_m = tl.where((m > -bound) & (m < bound), d_m, 0.0)
    to = d_products + lstm * d_products_stride + row * 4 * cell_dim + unit
    tl.store(to, (i - i * i) * g * 4.0 * d_m, exists)
    tl.store(to + cell_dim, (f - f * f) * m_before * d_m, exists)
    tl.store(to + 2 * cell_dim, (0.25 - g * g) * i * 4.0 * d_m, exists)
    tl.store(to + 3 * cell_dim, (o - o * o) * q * d_h, exists)
    tl.store(hidden + lstm * hidden_stride + row * cell_dim + unit, q * o, exists)
    tl.store(d_at, d_m * f, exists)
