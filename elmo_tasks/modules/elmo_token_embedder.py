"""ELMo as a token embedder of AllenNLP."""

from typing import Literal, Optional, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_tasks.modules.layer_mix import LayerMix
from elmo_tasks.modules.pretrained_bilm import PretrainedBilm

__all__ = ["ElmoTokenEmbedder"]


@TokenEmbedder.register("elmo")
class ElmoTokenEmbedder(TokenEmbedder):
    """
    ELMo (Peters et al. 2018): a frozen biLM, whose layers this embedder mixes with weights of its own (section 3.2,
    Eq. 1) and then drops out (section 3.3).

    Registered as a `TokenEmbedder` with name "elmo". A model that has ELMo at several places makes one embedder for
    each and gives all of them the same biLM.

    # Parameters

    bilm : `PretrainedBilm`
        The biLM, in a config `{"options": ..., "pretrained_file": ...}`. Left out in the configs of our task models,
        which have the biLM beside their embedders.
    layers : `Union[Literal["all", "top"], int]`, optional (default = `"all"`)
        What is mixed: all layers, the highest, or layer number `j`.
    layer_norm : `Literal["token", "batch"]`, optional (default = `None`)
        How each layer is normalised before the mix, see `LayerMix`.
    dropout : `float`, optional (default = `0.0`)
        The part of the mixed vectors' units that is dropped in training.

    # Raises

    `ConfigurationError`
        If a value is out of its range.
    """

    def __init__(
        self,
        bilm: PretrainedBilm,
        layers: Union[Literal["all", "top"], int] = "all",
        layer_norm: Optional[Literal["token", "batch"]] = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0.0 <= dropout < 1.0:
            raise ConfigurationError(f"the dropout of ELMo must be at least 0 and below 1, but is {dropout}")
        self.bilm = bilm
        try:
            self.mix = LayerMix(bilm.num_layers, layers=layers, layer_norm=layer_norm)
        except ValueError as error:
            raise ConfigurationError(f"ELMo: {error}") from error
        self._dropout = torch.nn.Dropout(dropout)

    def get_output_dim(self) -> int:
        """Units of a vector: twice the projection of the biLM."""
        return self.bilm.get_output_dim()

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        character_ids : `torch.Tensor`
            Shape `(batch_size, timesteps, 50)`, as the token indexers `elmo` and `elmo_characters` give it.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, timesteps, output_dim)`, zero where there is no word.
        """
        output = self.bilm(character_ids)
        mixed: torch.Tensor = self._dropout(self.mix(output.layers, output.mask))
        return mixed
