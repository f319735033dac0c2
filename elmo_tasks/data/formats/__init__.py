"""File formats of data sets, read without AllenNLP's instances; `elmo_tasks.data` exports some."""

__all__: list[str] = []
