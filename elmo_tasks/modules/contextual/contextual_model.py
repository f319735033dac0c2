"""The interface of what gives the layers of words in their context, for all embedders of a model."""

from abc import ABC, abstractmethod

import torch
from allennlp.common import Registrable

from elmo_tasks.bilm import BilmOutput

__all__ = ["ContextualModel"]


class ContextualModel(torch.nn.Module, Registrable, ABC):
    """
    What the embedders `elmo` of a model share: it gives the layers of all words of a batch, and where there is a word.
    Each embedder mixes them with weights of its own. However many ask for a batch, it is computed once.

    The registered ones are "bilm", which a config need not name, and "transformer".
    """

    default_implementation = "bilm"

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
