"""Finished runs as small files, which machines share, and what a plan still needs."""

__all__: list[str] = []
