"""The bidirectional language model of the paper: torch, NumPy and h5py only, without AllenNLP."""

from elmo_tasks.bilm.bilm import Bilm, BilmOutput
from elmo_tasks.bilm.options import BilmOptions

__all__ = ["Bilm", "BilmOptions", "BilmOutput"]
