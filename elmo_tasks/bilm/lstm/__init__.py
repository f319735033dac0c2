"""The LSTMs of the biLM: cell, recurrence over packed rows, packed matrix products, CUDA graphs."""

__all__: list[str] = []
