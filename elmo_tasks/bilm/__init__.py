"""
The bidirectional language model of the paper: torch, NumPy, h5py and lmdb only, without AllenNLP.

The layer cache, and lmdb with it, is imported at its first use: everything else works without lmdb.
"""

from typing import TYPE_CHECKING, Any

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.outputs import BilmContexts, BilmOutput

if TYPE_CHECKING:
    from elmo_tasks.bilm.cache.cached_bilm import CachedBilm
    from elmo_tasks.bilm.cache.layer_cache import LayerCache

__all__ = ["Bilm", "BilmContexts", "BilmOptions", "BilmOutput", "CachedBilm", "LayerCache"]


def __getattr__(name: str) -> Any:
    if name == "CachedBilm":
        from elmo_tasks.bilm.cache.cached_bilm import CachedBilm

        return CachedBilm
    if name == "LayerCache":
        from elmo_tasks.bilm.cache.layer_cache import LayerCache

        return LayerCache
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
