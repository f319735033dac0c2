"""The LSTMs of the biLM: cell, recurrence over packed rows, prepared matrix products, CUDA graphs."""

__all__: list[str] = []
