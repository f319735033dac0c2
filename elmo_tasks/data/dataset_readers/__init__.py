"""Dataset readers, one for each task; `elmo_tasks.data` exports them."""

__all__: list[str] = []
