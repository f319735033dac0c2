"""Results of finished runs, as tables and figures with the paper's numbers."""

__all__: list[str] = []
