"""The plan of a table or figure: tasks, variants, configs, digests of the data, and the runs to train."""

__all__: list[str] = []
