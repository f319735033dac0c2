"""
The paper's bidirectional language model. It needs torch, NumPy, h5py and safetensors, but not
AllenNLP.
"""

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.layer_cache import CachedBilm, LayerCache, LayerMemory, LayerStore
from elmo_tasks.bilm.layer_mix import LayerMix
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.outputs import BilmContexts, BilmOutput

__all__ = [
    "Bilm",
    "BilmContexts",
    "BilmOptions",
    "BilmOutput",
    "CachedBilm",
    "LayerCache",
    "LayerMemory",
    "LayerMix",
    "LayerStore",
]
