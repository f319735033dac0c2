"""The interface of what gives the layers of words in their context, for all embedders of a model."""

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from allennlp.common import Registrable

from elmo_tasks.bilm import BilmOutput, LayerCache

__all__ = ["ContextualModel", "layer_cache"]


class ContextualModel(torch.nn.Module, Registrable, ABC):
    """
    What the embedders `elmo` of a model share: it gives the layers of all words of a batch, and where there is a word.
    Each embedder mixes them with weights of its own. However many ask for a batch, it is computed once.

    The registered ones are "bilm", which a config need not name, and "transformer".
    """

    default_implementation = "bilm"

    weights_key: ClassVar[str]
    """What is in the names of all weights that a frozen model has to load."""

    def __init__(self) -> None:
        super().__init__()
        self.has_weights = False
        """Whether its weights were loaded, also by `load_state_dict`, or were trained from random ones."""
        self.register_load_state_dict_post_hook(_note_weights)

    def note_training(self, weights: Sequence[torch.Tensor]) -> bool:
        """Whether some of its weights are trained; if a step follows, they may be frozen later, also random ones."""
        is_trained = any(weight.requires_grad for weight in weights)
        if is_trained and self.training and torch.is_grad_enabled():
            self.has_weights = True
        return is_trained

    @property
    @abstractmethod
    def num_layers(self) -> int:
        """The number of layers, including the lowest, which does not depend on the context."""

    @abstractmethod
    def get_output_dim(self) -> int:
        """Units of each layer."""

    @abstractmethod
    def forward(self, words: torch.Tensor) -> BilmOutput:
        """
        # Parameters

        words : `torch.Tensor`
            Shape `(batch_size, timesteps, width)`, as the token indexer of the model gives it; zero where there is no
            word.

        # Returns

        `BilmOutput`
            All layers and the mask.
        """


def layer_cache(folder: str | None, dtype: Literal["float32", "float16"], max_bytes: int | None) -> LayerCache | None:
    """
    The cache in a folder, or else in that of the environment variable `ELMO_TASKS_CACHE`; `None` if neither is named.

    # Raises

    `ValueError`
        If a value is out of its range.
    """
    folder = folder or os.environ.get("ELMO_TASKS_CACHE")
    return LayerCache(folder, dtype=dtype, max_bytes=max_bytes) if folder else None


def _note_weights(module: torch.nn.Module, incompatible_keys: Any) -> None:
    assert isinstance(module, ContextualModel)
    if not any(module.weights_key in key for key in incompatible_keys.missing_keys):
        module.has_weights = True
