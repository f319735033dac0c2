"""ELMo, or a transformer, as an AllenNLP token embedder."""

from typing import Any, Literal, Optional, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_tasks.bilm import BilmOutput, LayerMix
from elmo_tasks.modules.contextual.contextual_bilm import ContextualBilm
from elmo_tasks.modules.contextual.contextual_model import ContextualModel
from elmo_tasks.modules.dropout import Dropout

__all__ = ["ElmoTokenEmbedder", "TransformerTokenEmbedder"]


@TokenEmbedder.register("elmo")
class ElmoTokenEmbedder(TokenEmbedder):
    """
    ELMo (Peters et al. 2018): mixes the layers of a biLM, which is frozen by default, with its own
    weights (section 3.2, Eq. 1) and then applies dropout (section 3.3). A model with ELMo at
    several places has one embedder per place, and the embedders share one `bilm`.

    # Parameters

    bilm : `ContextualModel`, optional
        A biLM to share. Without it, the embedder creates its own.
    layers, layer_norm
        See `LayerMix`.
    dropout : `float`
        Applied to the mix.
    bilm_arguments : `Any`
        The arguments of `ContextualBilm` if there is no `bilm`: `options`, `pretrained_file`, ...
    """

    def __init__(
        self,
        bilm: Optional[ContextualModel] = None,
        layers: Union[Literal["mix", "top"], int] = "mix",
        layer_norm: Optional[Literal["token", "batch"]] = None,
        dropout: float = 0.0,
        **bilm_arguments: Any,
    ) -> None:
        super().__init__()
        if bilm is not None and bilm_arguments:
            raise ConfigurationError(
                f"expected no options of a biLM next to 'bilm', got {sorted(bilm_arguments)}"
            )
        self.bilm = bilm or ContextualBilm(**bilm_arguments)
        self.mix = LayerMix(self.bilm.num_layers, layers=layers, layer_norm=layer_norm)
        self._dropout = Dropout(dropout)

    def get_output_dim(self) -> int:
        return self.bilm.output_dim

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """
        From shape `(batch_size, timesteps, 50)`, made by the token indexer `elmo` or
        `elmo_characters`, to `(batch_size, timesteps, output_dim)`, zero where there is no word.
        """
        return self.vectors_of(self.bilm(character_ids))

    def vectors_of(self, output: BilmOutput) -> torch.Tensor:
        """The mix of the layers with dropout: shape `(batch_size, timesteps, output_dim)`."""
        vectors: torch.Tensor = self._dropout(self.mix(output.layers, output.mask))
        return vectors


@TokenEmbedder.register("elmo_transformer")
class TransformerTokenEmbedder(ElmoTokenEmbedder):
    """`ElmoTokenEmbedder` over a transformer."""

    def forward(  # type: ignore[override]
        self,
        input_ids: torch.Tensor,
        word_numbers: torch.Tensor,
        mask: torch.Tensor,
        **inputs: torch.Tensor,
    ) -> torch.Tensor:
        """
        Takes the tensors of `TransformerIndexer`; the result is as in `ElmoTokenEmbedder.forward`.
        """
        return self.vectors_of(self.bilm(input_ids, word_numbers, mask, **inputs))
