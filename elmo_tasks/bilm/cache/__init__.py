"""Layers of a frozen biLM, kept on a local disk."""

__all__: list[str] = []
