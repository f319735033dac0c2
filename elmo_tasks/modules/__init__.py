"""Modules of the task models: ELMo, encoders, attention and decoders."""

from elmo_tasks.modules.best_span import best_span
from elmo_tasks.modules.bidaf_attention import BidafAttention
from elmo_tasks.modules.bio_decoder import BioDecoder
from elmo_tasks.modules.contextual.contextual_model import ContextualModel
from elmo_tasks.modules.contextual.initialization import initialize
from elmo_tasks.modules.contextual.pretrained_bilm import PretrainedBilm
from elmo_tasks.modules.contextual.pretrained_transformer import PretrainedTransformer
from elmo_tasks.modules.crf_decoder import best_tags, span_probabilities
from elmo_tasks.modules.distinct_characters import DistinctCharactersEncoder
from elmo_tasks.modules.elmo_places import concat_dim, concat_embedding, construct_embedders
from elmo_tasks.modules.elmo_token_embedder import ElmoTokenEmbedder
from elmo_tasks.modules.highway_lstm.alternating_highway_lstm import AlternatingHighwayLstm
from elmo_tasks.modules.layer_mix import LayerMix
from elmo_tasks.modules.paired_text import concat_texts
from elmo_tasks.modules.recurrent.encoders import GruEncoder, LstmEncoder
from elmo_tasks.modules.residual_attention import ResidualAttention
from elmo_tasks.modules.unpadded_cnn import UnpaddedCnn

__all__ = [
    "AlternatingHighwayLstm",
    "BidafAttention",
    "BioDecoder",
    "ContextualModel",
    "DistinctCharactersEncoder",
    "ElmoTokenEmbedder",
    "GruEncoder",
    "LayerMix",
    "LstmEncoder",
    "PretrainedBilm",
    "PretrainedTransformer",
    "ResidualAttention",
    "UnpaddedCnn",
    "best_span",
    "best_tags",
    "concat_dim",
    "concat_embedding",
    "concat_texts",
    "construct_embedders",
    "initialize",
    "span_probabilities",
]
