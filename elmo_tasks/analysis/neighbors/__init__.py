"""Words of a text that are near to a word in its sentence; `elmo_tasks.analysis` exports the public names."""

__all__: list[str] = []
