"""Modules of the task models: ELMo, encoders, attention and decoders."""

from elmo_tasks.modules.characters import DistinctCharactersEncoder, UnpaddedCnn
from elmo_tasks.modules.contextual.contextual_model import ContextualModel
from elmo_tasks.modules.contextual.pretrained_bilm import PretrainedBilm
from elmo_tasks.modules.contextual.pretrained_transformer import PretrainedTransformer
from elmo_tasks.modules.elmo_token_embedder import ElmoTokenEmbedder, TransformerTokenEmbedder
from elmo_tasks.modules.highway_lstm import AlternatingHighwayLstm
from elmo_tasks.modules.layer_mix import LayerMix
from elmo_tasks.modules.recurrent.encoders import GruEncoder, LstmEncoder
from elmo_tasks.modules.squad_attention import BidafAttention, ResidualAttention, best_span
from elmo_tasks.modules.viterbi import best_tags, bio_scores, crf_scores, span_probabilities

__all__ = [
    "AlternatingHighwayLstm",
    "BidafAttention",
    "ContextualModel",
    "DistinctCharactersEncoder",
    "ElmoTokenEmbedder",
    "GruEncoder",
    "LayerMix",
    "LstmEncoder",
    "PretrainedBilm",
    "PretrainedTransformer",
    "ResidualAttention",
    "TransformerTokenEmbedder",
    "UnpaddedCnn",
    "best_span",
    "best_tags",
    "bio_scores",
    "crf_scores",
    "span_probabilities",
]
