"""Modules of the task models: ELMo and encoders."""

from elmo_tasks.modules.characters import DistinctCharactersEncoder, UnpaddedCnn
from elmo_tasks.modules.contextual.contextual_model import ContextualModel
from elmo_tasks.modules.contextual.pretrained_bilm import PretrainedBilm
from elmo_tasks.modules.contextual.pretrained_transformer import PretrainedTransformer, TransformerIndexer
from elmo_tasks.modules.elmo_token_embedder import ElmoTokenEmbedder, TransformerTokenEmbedder
from elmo_tasks.modules.layer_mix import LayerMix
from elmo_tasks.modules.recurrent.encoders import AlternatingHighwayLstm, GruEncoder, LstmEncoder

__all__ = [
    "AlternatingHighwayLstm",
    "ContextualModel",
    "DistinctCharactersEncoder",
    "ElmoTokenEmbedder",
    "GruEncoder",
    "LayerMix",
    "LstmEncoder",
    "PretrainedBilm",
    "PretrainedTransformer",
    "TransformerIndexer",
    "TransformerTokenEmbedder",
    "UnpaddedCnn",
]
