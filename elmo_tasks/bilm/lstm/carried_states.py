"""LSTM states that a stateful biLM carries from one batch to the next."""

from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from elmo_tasks.bilm.lstm.projected_lstm import LstmState

__all__ = ["CarriedStates"]


class CarriedStates:
    """The states of several LSTMs, with a row for each row of the largest batch so far."""

    def __init__(self) -> None:
        self._states: list[LstmState] = []

    def of(self, rows: torch.Tensor, zero: Sequence[LstmState]) -> list[LstmState]:
        """
        The state of each LSTM for all rows of a batch, in any order. New rows start from `zero`, the zero state of each
        LSTM, which also decides types and device.
        """
        if not self._states:
            return list(zero)
        n_rows = len(rows)
        return [
            (_grown(old_output.to(output), n_rows)[rows], _grown(old_memory.to(memory), n_rows)[rows])
            for (output, memory), (old_output, old_memory) in zip(zero, self._states, strict=True)
        ]

    def keep(self, rows: torch.Tensor, states: Sequence[LstmState]) -> None:
        """Replaces the states of these rows, without gradients; further rows, of an earlier batch, keep theirs."""
        order = rows.argsort()
        new = [(output.detach()[order], memory.detach()[order]) for output, memory in states]
        if self._states:
            new = [
                (
                    torch.cat([output, old_output[len(rows) :].to(output)]),
                    torch.cat([memory, old_memory[len(rows) :].to(memory)]),
                )
                for (output, memory), (old_output, old_memory) in zip(new, self._states, strict=True)
            ]
        self._states = new


def _grown(rows: torch.Tensor, n_rows: int) -> torch.Tensor:
    """The first `n_rows` rows, with rows of zeros added where there are fewer."""
    return pad(rows[:n_rows], (0, 0, 0, max(0, n_rows - rows.size(0))))
