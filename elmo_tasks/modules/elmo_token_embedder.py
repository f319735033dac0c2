"""ELMo as a token embedder of AllenNLP."""

from typing import Any, Literal, Optional, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_tasks.bilm import BilmOutput
from elmo_tasks.modules.contextual.contextual_model import ContextualModel
from elmo_tasks.modules.contextual.pretrained_bilm import PretrainedBilm
from elmo_tasks.modules.layer_mix import LayerMix

__all__ = ["ElmoTokenEmbedder", "TransformerTokenEmbedder"]


@TokenEmbedder.register("elmo")
class ElmoTokenEmbedder(TokenEmbedder):
    """
    ELMo (Peters et al. 2018): this embedder mixes the layers of a frozen biLM with its own weights (section 3.2, Eq. 1)
    and then drops out units (section 3.3). A model with ELMo at several places has one embedder for each, and all of
    them share its `bilm`.

    # Parameters

    bilm : `ContextualModel`, optional
        The biLM, in a config `{"options": ..., "pretrained_file": ...}`; a model that shares its biLM passes it.
    layers : `Union[Literal["mix", "top"], int]`
        The mix of all layers, the highest layer, or layer number `j`.
    layer_norm : `Literal["token", "batch"]`, optional
        How each layer is normalised before the mix: see `LayerMix`.
    dropout : `float`
        Share of the mixed vectors' units that is dropped in training.
    of_bilm : `Any`
        Arguments of `PretrainedBilm` instead of `bilm`: `options`, `pretrained_file`, ...
    """

    def __init__(
        self,
        bilm: Optional[ContextualModel] = None,
        layers: Union[Literal["mix", "top"], int] = "mix",
        layer_norm: Optional[Literal["token", "batch"]] = None,
        dropout: float = 0.0,
        **of_bilm: Any,
    ) -> None:
        super().__init__()
        if (bilm is None) == (not of_bilm):
            raise ConfigurationError(
                "expected one biLM for ELMo, either 'bilm' or 'options' with 'pretrained_file', "
                f"got {'none' if bilm is None else f'the biLM of the model and {sorted(of_bilm)}'}"
            )
        self.bilm: ContextualModel = PretrainedBilm(**of_bilm) if bilm is None else bilm
        self.mix = LayerMix(self.bilm.num_layers, layers=layers, layer_norm=layer_norm)
        self._dropout = torch.nn.Dropout(dropout)

    def get_output_dim(self) -> int:
        """Units of a vector, as of each layer: twice the projection of a biLM."""
        return self.bilm.get_output_dim()

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """
        From shape `(batch_size, timesteps, 50)`, as the token indexers `elmo` and `elmo_characters` give it, to
        `(batch_size, timesteps, output_dim)`, zero where there is no word.
        """
        return self.mixed(self.bilm(character_ids))

    def mixed(self, output: BilmOutput) -> torch.Tensor:
        """The mix of a biLM's layers with dropout: shape `(batch_size, timesteps, output_dim)`."""
        vectors: torch.Tensor = self._dropout(self.mix(output.layers, output.mask))
        return vectors


@TokenEmbedder.register("elmo_transformer")
class TransformerTokenEmbedder(ElmoTokenEmbedder):
    """`ElmoTokenEmbedder` over a transformer."""

    def forward(  # type: ignore[override]
        self,
        token_ids: torch.Tensor,
        mask: torch.Tensor,
        offsets: torch.Tensor,
        wordpiece_mask: torch.Tensor,
        type_ids: Optional[torch.Tensor] = None,
        segment_concat_mask: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """Shape `(batch_size, timesteps, output_dim)`, zero where there is no word."""
        output = self.bilm(
            token_ids,
            mask,
            offsets=offsets,
            wordpiece_mask=wordpiece_mask,
            type_ids=type_ids,
            segment_concat_mask=segment_concat_mask,
        )
        return self.mixed(output)
