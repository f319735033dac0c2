"""File formats of the embed job: one module each, and the files of its parts."""

__all__: list[str] = []
