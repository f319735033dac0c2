"""Data loaders of language modelling; `elmo_tasks.data` exports them."""

__all__: list[str] = []
