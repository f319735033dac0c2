"""
The step of `cell.py` and its gradient as one CUDA kernel each: every number is read and written once.

Imported only where Triton is installed.
"""

import torch
import triton
import triton.language as tl

__all__ = ["cell_backward", "cell_forward"]

_BLOCK = 256


@triton.jit
def _forward_kernel(
    products,
    memory,
    hidden,
    gates,
    cell_dim,
    clip,
    products_lstm,
    products_row,
    memory_lstm,
    memory_row,
    hidden_lstm,
    hidden_row,
    gates_lstm,
    gates_row,
    has_clip: tl.constexpr,
    keeps_gates: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * block + tl.arange(0, block)
    lstm = tl.program_id(2).to(tl.int64)
    inside = unit < cell_dim
    products += lstm * products_lstm + row * products_row + unit
    memory += lstm * memory_lstm + row * memory_row + unit
    hidden += lstm * hidden_lstm + row * hidden_row + unit

    input_gate = tl.sigmoid(tl.load(products, inside, 0.0).to(tl.float32))
    candidate = tl.sigmoid(tl.load(products + cell_dim, inside, 0.0).to(tl.float32))
    forget_gate = tl.sigmoid(tl.load(products + 2 * cell_dim, inside, 0.0).to(tl.float32))
    output_gate = tl.sigmoid(tl.load(products + 3 * cell_dim, inside, 0.0).to(tl.float32))
    now = forget_gate * tl.load(memory, inside, 0.0) + input_gate * (2.0 * candidate - 1.0)
    if has_clip:
        now = tl.minimum(tl.maximum(now, -clip), clip)

    tl.store(memory, now, inside)
    tl.store(hidden, (output_gate * (tl.sigmoid(2.0 * now) - 0.5)).to(hidden.dtype.element_ty), inside)
    if keeps_gates:
        gates += lstm * gates_lstm + row * gates_row + unit
        tl.store(gates, input_gate, inside)
        tl.store(gates + cell_dim, candidate, inside)
        tl.store(gates + 2 * cell_dim, forget_gate, inside)
        tl.store(gates + 3 * cell_dim, output_gate, inside)


@triton.jit
def _backward_kernel(
    gates,
    memory,
    previous_memory,
    d_hidden,
    d_memory,
    d_products,
    d_previous,
    cell_dim,
    clip,
    gates_lstm,
    gates_row,
    memory_lstm,
    memory_row,
    previous_lstm,
    previous_row,
    d_hidden_lstm,
    d_hidden_row,
    d_memory_lstm,
    d_memory_row,
    d_products_lstm,
    d_products_row,
    d_previous_lstm,
    d_previous_row,
    has_clip: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * block + tl.arange(0, block)
    lstm = tl.program_id(2).to(tl.int64)
    inside = unit < cell_dim
    gates += lstm * gates_lstm + row * gates_row + unit
    d_products += lstm * d_products_lstm + row * d_products_row + unit
    now = tl.load(memory + lstm * memory_lstm + row * memory_row + unit, inside, 0.0)
    before = tl.load(previous_memory + lstm * previous_lstm + row * previous_row + unit, inside, 0.0)
    d_hid = tl.load(d_hidden + lstm * d_hidden_lstm + row * d_hidden_row + unit, inside, 0.0).to(tl.float32)
    d_now = tl.load(d_memory + lstm * d_memory_lstm + row * d_memory_row + unit, inside, 0.0)

    input_gate = tl.load(gates, inside, 0.0)
    candidate = tl.load(gates + cell_dim, inside, 0.0)
    forget_gate = tl.load(gates + 2 * cell_dim, inside, 0.0)
    output_gate = tl.load(gates + 3 * cell_dim, inside, 0.0)
    squashed = tl.sigmoid(2.0 * now)
    d_now += d_hid * output_gate * (2.0 * squashed * (1.0 - squashed))
    if has_clip:
        d_now = tl.where(tl.abs(now) < clip, d_now, 0.0)
    d_input = d_now * (2.0 * candidate - 1.0) * input_gate * (1.0 - input_gate)
    d_candidate = d_now * input_gate * 4.0 * candidate * (1.0 - candidate)
    d_forget = d_now * before * forget_gate * (1.0 - forget_gate)
    d_output = d_hid * (squashed - 0.5) * output_gate * (1.0 - output_gate)

    tl.store(d_products, d_input.to(d_products.dtype.element_ty), inside)
    tl.store(d_products + cell_dim, d_candidate.to(d_products.dtype.element_ty), inside)
    tl.store(d_products + 2 * cell_dim, d_forget.to(d_products.dtype.element_ty), inside)
    tl.store(d_products + 3 * cell_dim, d_output.to(d_products.dtype.element_ty), inside)
    d_previous += lstm * d_previous_lstm + row * d_previous_row + unit
    tl.store(d_previous, d_now * forget_gate, inside)


def cell_forward(
    products: torch.Tensor,
    memory: torch.Tensor,
    clip: float | None,
    *,
    dtype: torch.dtype,
    gates: torch.Tensor | None = None,
) -> torch.Tensor:
    """See `cell.cell_forward`; `memory` and `gates` are float32."""
    hidden = torch.empty_like(memory, dtype=dtype, memory_format=torch.contiguous_format)
    tensors = [products, memory, hidden, products if gates is None else gates]
    _forward_kernel[_grid(memory)](
        *tensors,
        memory.size(-1),
        float(clip or 0.0),
        *_strides(tensors),
        has_clip=clip is not None,
        keeps_gates=gates is not None,
        block=_BLOCK,
    )
    return hidden


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
    """See `cell.cell_backward`; gates, memories and `d_memory` are float32."""
    d_previous = torch.empty_like(memory, memory_format=torch.contiguous_format)
    tensors = [gates, memory, previous_memory, d_hidden, d_memory, d_products, d_previous]
    _backward_kernel[_grid(memory)](
        *tensors, memory.size(-1), float(clip or 0.0), *_strides(tensors), has_clip=clip is not None, block=_BLOCK
    )
    return d_previous


def _strides(tensors: list[torch.Tensor]) -> list[int]:
    """The strides of the LSTMs and of the rows; that of the units is 1."""
    assert all(tensor.stride(2) == 1 for tensor in tensors)
    return [stride for tensor in tensors for stride in tensor.stride()[:2]]


def _grid(memory: torch.Tensor) -> tuple[int, int, int]:
    n_lstms, n_rows, cell_dim = memory.shape
    # Rows are on the first axis: on the others a grid has at most 65,535 blocks.
    return n_rows, triton.cdiv(cell_dim, _BLOCK), n_lstms
