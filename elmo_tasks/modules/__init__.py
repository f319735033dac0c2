"""Modules of the task models: ELMo and encoders."""

from elmo_tasks.bilm import LayerMix
from elmo_tasks.modules.character_embedder import DistinctCharactersEncoder, UnpaddedCnn
from elmo_tasks.modules.contextual.contextual_bilm import ContextualBilm
from elmo_tasks.modules.contextual.contextual_model import ContextualModel
from elmo_tasks.modules.contextual.pretrained_transformer import PretrainedTransformer
from elmo_tasks.modules.recurrent.encoders import AlternatingHighwayLstm, GruEncoder, LstmEncoder
from elmo_tasks.modules.token_embedders import ElmoTokenEmbedder, TransformerTokenEmbedder

__all__ = [
    "AlternatingHighwayLstm",
    "ContextualBilm",
    "ContextualModel",
    "DistinctCharactersEncoder",
    "ElmoTokenEmbedder",
    "GruEncoder",
    "LayerMix",
    "LstmEncoder",
    "PretrainedTransformer",
    "TransformerTokenEmbedder",
    "UnpaddedCnn",
]
