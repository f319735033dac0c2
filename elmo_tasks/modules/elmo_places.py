"""The places at which a task model takes ELMo: embedders that share one biLM, or a transformer in its place."""

from typing import Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors
from allennlp.modules import TextFieldEmbedder

from elmo_tasks.modules.contextual.contextual_model import ContextualModel

__all__ = ["concat_dim", "concat_embedding", "construct_embedders"]


def construct_embedders(
    at_input: Lazy[TextFieldEmbedder], at_output: Optional[Lazy[TextFieldEmbedder]], bilm: Optional[ContextualModel]
) -> tuple[TextFieldEmbedder, Optional[TextFieldEmbedder]]:
    """
    The embedders at the input and at the output of a model's encoder (section 3.3 of the paper). Each mixes the layers
    with its own weights; they share one biLM, which runs once a batch for both: see `ContextualModel`.

    # Parameters

    at_input : `Lazy[TextFieldEmbedder]`
        The argument of the model.
    at_output : `Lazy[TextFieldEmbedder]`, optional
        The same; `None` for nothing at the output.
    bilm : `ContextualModel`, optional
        The biLM that the token embedders `elmo` of the model share, or a transformer in its place; `None` without
        either.

    # Returns

    `Tuple[TextFieldEmbedder, Optional[TextFieldEmbedder]]`
        The embedders with that biLM.
    """
    shared = {} if bilm is None else {"bilm": bilm}
    return at_input.construct(**shared), None if at_output is None else at_output.construct(**shared)


def concat_embedding(
    hidden: torch.Tensor, embedder: Optional[TextFieldEmbedder], tokens: TextFieldTensors
) -> torch.Tensor:
    """
    The output of an encoder, concatenated with an embedder's vector for each word.

    # Parameters

    hidden : `torch.Tensor`
        Shape `(batch_size, timesteps, dim)`.
    embedder : `TextFieldEmbedder`, optional
        `None`: `hidden` alone.
    tokens : `TextFieldTensors`
        The words, `timesteps` in each of `batch_size` sentences.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, timesteps, dim + embedder.get_output_dim())`.
    """
    return hidden if embedder is None else torch.cat([hidden, embedder(tokens)], -1)


def concat_dim(width: int, embedder: Optional[TextFieldEmbedder]) -> int:
    """The last dimension of what `concat_embedding` returns, for a `hidden` of `width`."""
    return width if embedder is None else width + embedder.get_output_dim()
