"""Data loaders of language modelling."""

from elmo_tasks.data.data_loaders.lm_data_loader import LmDataLoader
from elmo_tasks.data.data_loaders.lm_window_data_loader import LmWindowDataLoader

__all__ = ["LmDataLoader", "LmWindowDataLoader"]
