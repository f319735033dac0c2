"""A page of HTML of all results and runs of a folder."""

__all__: list[str] = []
