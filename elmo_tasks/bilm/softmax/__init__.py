"""The output layer of a biLM in training, and its word list."""

__all__: list[str] = []
