"""What a model plugs in."""

from elmo_tasks.modules.alternating_highway_lstm import AlternatingHighwayLstm
from elmo_tasks.modules.best_span import best_span
from elmo_tasks.modules.bidaf_attention import BidafAttention
from elmo_tasks.modules.bio_decoder import BioDecoder
from elmo_tasks.modules.elmo_token_embedder import ElmoTokenEmbedder
from elmo_tasks.modules.joined_text import join
from elmo_tasks.modules.layer_mix import LayerMix
from elmo_tasks.modules.places import beside, construct_embedders, width_beside
from elmo_tasks.modules.pretrained_bilm import PretrainedBilm
from elmo_tasks.modules.residual_attention import ResidualAttention

__all__ = [
    "AlternatingHighwayLstm",
    "BidafAttention",
    "BioDecoder",
    "ElmoTokenEmbedder",
    "LayerMix",
    "PretrainedBilm",
    "ResidualAttention",
    "beside",
    "best_span",
    "construct_embedders",
    "join",
    "width_beside",
]
