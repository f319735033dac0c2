"""The places at which a task model takes ELMo: embedders that share one biLM."""

from typing import Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors
from allennlp.modules import TextFieldEmbedder

from elmo_tasks.modules.pretrained_bilm import PretrainedBilm

__all__ = ["beside", "construct_embedder"]


def construct_embedder(embedder: Lazy[TextFieldEmbedder], bilm: Optional[PretrainedBilm]) -> TextFieldEmbedder:
    """
    The embedder of one place of a model, the input or the output of its encoder for example (section 3.3 of the paper).
    The embedders of all places mix the layers with weights of their own, and ask one biLM, which runs once a batch for
    all of them: see `PretrainedBilm`.

    # Parameters

    embedder : `Lazy[TextFieldEmbedder]`
        As the model got it.
    bilm : `PretrainedBilm`, optional
        What the token embedders `elmo` of the model share; `None` where it has no ELMo.

    # Returns

    `TextFieldEmbedder`
        With that biLM.
    """
    return embedder.construct() if bilm is None else embedder.construct(bilm=bilm)


def beside(hidden: torch.Tensor, embedder: Optional[TextFieldEmbedder], tokens: TextFieldTensors) -> torch.Tensor:
    """
    What an encoder says of each word, with an embedder's vector of the word beside it.

    # Parameters

    hidden : `torch.Tensor`
        Shape `(batch_size, timesteps, dim)`.
    embedder : `TextFieldEmbedder`, optional
        `None` where nothing stands beside it.
    tokens : `TextFieldTensors`
        The words, `timesteps` in each of `batch_size` sentences.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, timesteps, dim + embedder.get_output_dim())`.
    """
    return hidden if embedder is None else torch.cat([hidden, embedder(tokens)], -1)
