"""Models that give the layers of words in their context: the biLM, or a transformer in its place."""

__all__: list[str] = []
