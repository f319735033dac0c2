"""Output layers of a biLM in training, and its list of words."""

__all__: list[str] = []
