"""
The LSTMs of a layer over one sentence on a CPU, without gradients, where reading the weights is
what takes time.

With one row, oneDNN's packed product takes 1.5 to 2.5 times as long as `addmm` with the weights as
they are stored, `(input_dim, output_dim)`. So this uses the parameters, and copies only small ones,
or where a copy in a different layout is a third faster. With more rows, the packed products are as
fast or faster.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm

__all__ = ["OneRowLinear", "SentenceLstms", "takes_one_row"]

# Weights of at most this many elements each (4 MB of float32) are stacked, for one product over all
# LSTMs.
ELEMENTS_STACKED = 2**20


class OneRowLinear:
    """
    Products of one row with the weights of several LSTMs, of shape `(input_dim, output_dim)` each.
    """

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        input_dim, output_dim = weights[0].shape
        self._stacked: torch.Tensor | None = None
        self._weights: list[torch.Tensor] = []
        if weights[0].numel() <= ELEMENTS_STACKED:
            self._stacked = torch.stack(list(weights))
        elif input_dim > output_dim:
            # With many inputs, a product of one row is faster if the weights of an output are
            # contiguous.
            self._weights = [weight.t().contiguous().t() for weight in weights]
        else:
            self._weights = list(weights)

    def add_to(self, totals: torch.Tensor, rows: torch.Tensor) -> None:
        """
        `totals += rows @ W`, of shapes `(n_lstms, 1, output_dim)` and `(n_lstms, 1, input_dim)`.
        """
        if self._stacked is not None:
            totals.baddbmm_(rows, self._stacked)
            return
        for total, row, weight in zip(totals, rows, self._weights, strict=True):
            total.addmm_(row, weight)

    def write(self, rows: torch.Tensor, out: torch.Tensor) -> None:
        """`out = rows @ W`, of the same shapes."""
        if self._stacked is not None:
            torch.bmm(rows, self._stacked, out=out)
            return
        for row, weight, result in zip(rows, self._weights, out, strict=True):
            torch.mm(row, weight, out=result)


def takes_one_row(parameter: torch.Tensor, dtype: torch.dtype) -> bool:
    """
    Whether products of this type over one sentence are faster here. In bfloat16, packed ones were
    as fast.
    """
    return (
        parameter.device.type == "cpu"
        and parameter.dtype == dtype
        and dtype in (torch.float32, torch.float64)
    )


@dataclass(slots=True)
class _State:
    """
    The state of LSTMs after a word: shapes `(n_lstms, 1, projection_dim)` and
    `(n_lstms, 1, cell_dim)`.
    """

    output: torch.Tensor
    memory: torch.Tensor


class SentenceLstms:
    """
    LSTMs of the same shape over one sentence, from their parameters as they are stored.
    `ProjectedLstm` has the formulas.
    """

    def __init__(self, lstms: Sequence[ProjectedLstm]) -> None:
        cell_dim, dim = lstms[0].projection.shape
        self._n_lstms = len(lstms)
        self._cell_dim = cell_dim
        self._dim = dim
        self._recurrent_side = OneRowLinear([lstm.kernel.detach()[dim:] for lstm in lstms])
        self._projection = OneRowLinear([lstm.projection.detach() for lstm in lstms])
        self._cell_clip = lstms[0].cell_clip
        self._projection_clip = lstms[0].projection_clip

    def __call__(
        self, products_of_spans: Iterable[Sequence[torch.Tensor] | torch.Tensor]
    ) -> torch.Tensor:
        """
        The outputs, of shape `(n_lstms, n_words, projection_dim)`. Each element of
        `products_of_spans` has the products with the inputs of the next words of the sentence: for
        each LSTM of shape `(n_words, 4 * cell_dim)`, scaled and ordered as for `LstmCell`.
        """
        state = None
        outputs_of_spans = []
        for products_of_lstms in products_of_spans:
            products = _unscaled(products_of_lstms)
            if state is None:
                state = self._zero_state(products)
            outputs, state = self._run_words(products, state)
            outputs_of_spans.append(outputs)
        # Contiguous, because dropout draws its random numbers in the order of the memory.
        return torch.cat(outputs_of_spans).squeeze(2).transpose(0, 1).contiguous()

    def _zero_state(self, like: torch.Tensor) -> _State:
        return _State(
            output=like.new_zeros(self._n_lstms, 1, self._dim),
            memory=like.new_zeros(self._n_lstms, 1, self._cell_dim),
        )

    def _run_words(self, products: torch.Tensor, state: _State) -> tuple[torch.Tensor, _State]:
        """
        The outputs at some words, of shape `(n_words, n_lstms, 1, projection_dim)`, and the state
        after them. The products, of shape `(n_words, n_lstms, 4, cell_dim)`, and the state's memory
        are overwritten.
        """
        outputs = products.new_empty(len(products), self._n_lstms, 1, self._dim)
        previous = state.output
        memory = state.memory
        hidden = torch.empty_like(memory)
        candidate = torch.empty_like(memory)
        # For each word. Shape: (n_lstms, 1, 4 * cell_dim), and (n_lstms, 1, cell_dim) for each
        # block.
        products_of_words = products.flatten(2).unsqueeze(2).unbind()
        i, g, f, o = (block.unsqueeze(2).unbind() for block in products.unbind(2))
        for word, output in enumerate(outputs.unbind()):
            self._recurrent_side.add_to(products_of_words[word], previous)
            torch.tanh(g[word], out=candidate)
            # All blocks, because one call takes less time than three.
            products_of_words[word].sigmoid_()
            memory.mul_(f[word]).addcmul_(i[word], candidate)
            if self._cell_clip is not None:
                memory.clamp_(-self._cell_clip, self._cell_clip)
            torch.tanh(memory, out=hidden).mul_(o[word])
            self._projection.write(hidden, output)
            if self._projection_clip is not None:
                output.clamp_(-self._projection_clip, self._projection_clip)
            previous = output
        return outputs, _State(previous, memory)


def _unscaled(products_of_lstms: Sequence[torch.Tensor] | torch.Tensor) -> torch.Tensor:
    """
    Products for `LstmCell` in the order and the scale of the parameters:
    `(n_words, n_lstms, 4, cell_dim)`.
    """
    # Shape: (n_words, n_lstms, 4 * cell_dim)
    products = torch.stack(list(products_of_lstms), 1)
    i, f, g, o = products.chunk(4, -1)
    return torch.stack([i, 0.5 * g, f, o], 2)
