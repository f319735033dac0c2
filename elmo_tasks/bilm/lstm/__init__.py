"""The LSTMs of the biLM: cell, recurrence over packed rows, packed matrix products."""

__all__: list[str] = []
