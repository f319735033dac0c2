"""ELMo as a token embedder of AllenNLP."""

from inspect import signature
from typing import Any, Literal, Optional, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_tasks.modules.contextual.contextual_model import ContextualModel
from elmo_tasks.modules.contextual.pretrained_bilm import PretrainedBilm
from elmo_tasks.modules.layer_mix import LayerMix

__all__ = ["ElmoTokenEmbedder"]


@TokenEmbedder.register("elmo", constructor="from_config")
class ElmoTokenEmbedder(TokenEmbedder):
    """
    ELMo (Peters et al. 2018): a frozen biLM, whose layers this embedder mixes with weights of its own (section 3.2,
    Eq. 1) and then drops out (section 3.3).

    Registered as a `TokenEmbedder` with name "elmo"; `from_config` says what a config may hold. A model that has ELMo
    at several places makes one embedder for each and gives all of them the same biLM.

    # Parameters

    bilm : `ContextualModel`
        The biLM, or a transformer in its place.
    layers : `Union[Literal["mix", "top"], int]`
        The mix of all layers, the highest layer, or layer number `j`.
    layer_norm : `Literal["token", "batch"]`, optional
        How each layer is normalised before the mix, see `LayerMix`.
    dropout : `float`
        The share of the mixed vectors' units that is dropped in training.

    # Raises

    `ConfigurationError`
        If a value is out of its range.
    """

    def __init__(
        self,
        bilm: ContextualModel,
        layers: Union[Literal["mix", "top"], int] = "mix",
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

    @classmethod
    def from_config(
        cls,
        options: Optional[dict[str, Any]] = None,
        pretrained_file: Optional[str] = None,
        requires_grad: bool = False,
        stateful: bool = False,
        precision: Literal["float32", "bf16"] = "float32",
        cache_folder: Optional[str] = None,
        cache_dtype: Literal["float32", "float16"] = "float32",
        cache_max_bytes: Optional[int] = None,
        layers: Union[Literal["mix", "top"], int] = "mix",
        layer_norm: Optional[Literal["token", "batch"]] = None,
        dropout: float = 0.0,
        bilm: Optional[ContextualModel] = None,
    ) -> "ElmoTokenEmbedder":
        """
        # Parameters

        options, pretrained_file, ..., cache_max_bytes : optional
            The biLM of this embedder: see `PretrainedBilm`.
        layers, layer_norm, dropout : optional
            See the class.
        bilm : `ContextualModel`, optional
            The biLM that a model shares among its embedders, or a transformer in its place, instead of `options` and
            the rest.

        # Raises

        `ConfigurationError`
            If there is no biLM, or there are two.
        """
        of_bilm: dict[str, Any] = {
            "pretrained_file": pretrained_file,
            "requires_grad": requires_grad,
            "stateful": stateful,
            "precision": precision,
            "cache_folder": cache_folder,
            "cache_dtype": cache_dtype,
            "cache_max_bytes": cache_max_bytes,
        }
        if (options is None) == (bilm is None):
            raise ConfigurationError(
                "a token embedder 'elmo' must have one biLM, but has "
                f"{'none' if bilm is None else 'two, its own and that of its model'}: give it "
                '`"options": import "options.json", "pretrained_file": "weights.hdf5"`, or, in a model that shares its '
                "biLM, the model `bilm` with these two"
            )
        if bilm is None:
            assert options is not None
            bilm = PretrainedBilm(options, **of_bilm)
        else:
            defaults = signature(PretrainedBilm).parameters
            misplaced = [name for name, value in of_bilm.items() if value != defaults[name].default]
            if misplaced:
                raise ConfigurationError(
                    f"arguments of a biLM must be next to its options, in the model's 'bilm', but {misplaced} "
                    "is given to an embedder that shares it: move it there"
                )
        return cls(bilm, layers=layers, layer_norm=layer_norm, dropout=dropout)

    def get_output_dim(self) -> int:
        """Units of a vector: those of each layer, in a biLM twice its projection."""
        return self.bilm.get_output_dim()

    def forward(self, character_ids: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        character_ids : `torch.Tensor`
            Shape `(batch_size, timesteps, 50)`, as the token indexers `elmo` and `elmo_characters` give it; for a
            transformer its pieces, as the token indexer `elmo_transformer` gives them.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, timesteps, output_dim)`, zero where there is no word.
        """
        output = self.bilm(character_ids)
        mixed: torch.Tensor = self._dropout(self.mix(output.layers, output.mask))
        return mixed
