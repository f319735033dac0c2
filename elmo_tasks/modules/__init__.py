"""What a model plugs in."""

from elmo_tasks.modules.elmo_token_embedder import ElmoTokenEmbedder
from elmo_tasks.modules.joined_text import join
from elmo_tasks.modules.layer_mix import LayerMix
from elmo_tasks.modules.places import beside, construct_embedder
from elmo_tasks.modules.pretrained_bilm import PretrainedBilm

__all__ = ["ElmoTokenEmbedder", "LayerMix", "PretrainedBilm", "beside", "construct_embedder", "join"]
