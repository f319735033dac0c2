"""The bidirectional language model of the paper: torch, NumPy, h5py and lmdb only, without AllenNLP."""

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.cache.cached_bilm import CachedBilm
from elmo_tasks.bilm.cache.layer_cache import LayerCache
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.outputs import BilmContexts, BilmOutput

__all__ = ["Bilm", "BilmContexts", "BilmOptions", "BilmOutput", "CachedBilm", "LayerCache"]
