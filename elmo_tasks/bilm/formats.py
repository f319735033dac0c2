"""
The options and the weights of a biLM, from files in any format.

A model that AllenNLP (0.x to 2.x) trained with its `elmo_token_embedder` or `Elmo` has the weights
of the biLM in its own `weights.th`. Their shapes show the options, except for the clip values,
which are 3 in all of the authors' biLMs, and the activation.
"""

import fnmatch
import logging
import re
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

import numpy as np
import torch

from elmo_tasks.bilm.many_langs import (
    model_files,
    options_of_model,
    weight_sources,
    weights_of_model,
)
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.weights import read_arrays, read_weights
from elmo_tasks.files.archives import compare_checksums
from elmo_tasks.files.shipped import PRETRAINED

__all__ = ["read_any_options", "read_any_weights"]

logger = logging.getLogger(__name__)

_CHARACTERS = "char_emb_layer.embedding.weight"
# The prefix of AllenNLP's `Elmo` in the model, and the name of a tensor in the word encoder or in
# the LSTMs.
_NAME = re.compile(r"(.*)_elmo_lstm\.(?:_token_embedder\._?|_elmo_lstm\.)(.+)")


def read_any_options(options_file: str | PathLike[str]) -> BilmOptions:
    """
    The options in an `options.json`, an ELMoForManyLangs model's `config.json` or an AllenNLP
    model's `.th` file.
    """
    path = Path(options_file)
    if path.suffix == ".th":
        return _options_from_shapes(path)
    files = model_files(path.parent)
    if files is not None and path.name == files[0].name:
        return options_of_model(path)
    return BilmOptions.from_file(path)


def read_any_weights(
    weight_file: str | PathLike[str], options: BilmOptions
) -> dict[str, torch.Tensor]:
    """
    The state for `Bilm.load_state_dict`, from HDF5, safetensors, ELMoForManyLangs' `encoder.pkl` or
    a `.th` file.
    """
    path = Path(weight_file)
    if path.suffix == ".pkl":
        return weights_of_model(path.parent, options)
    if path.suffix != ".th":
        return read_weights(path, options)
    tensors = _tensors_of_elmo(path)
    return {source.parameter: source.parameter_from(tensors) for source in weight_sources(options)}


def _options_from_shapes(path: Path) -> BilmOptions:
    tensors = _tensors_of_elmo(path)
    for included in PRETRAINED.glob("*/weights.hdf5"):
        characters = read_arrays(included, ("char_embed",))["char_embed"]
        if np.array_equal(characters, tensors[_CHARACTERS][1:]):
            return BilmOptions.from_file(included.with_name("options.json"))
    filters = []
    for index in range(_count(tensors, "convolutions.*.bias")):
        number, character_dim, width = tensors[f"convolutions.{index}.weight"].shape
        filters.append((width, number))
    projection_dim, cell_dim = tensors["forward_layer_0.state_projection.weight"].shape
    logger.warning(
        "the clip values and the activation of this biLM are not known, using 3 and ReLU: %s", path
    )
    return BilmOptions(
        cell_dim=cell_dim,
        projection_dim=projection_dim,
        n_layers=_count(tensors, "forward_layer_*.state_projection.weight"),
        character_dim=character_dim,
        filters=tuple(filters),
        n_highway=_count(tensors, "highways._layers.*.bias"),
    )


def _count(names: Iterable[str], pattern: str) -> int:
    return len(fnmatch.filter(names, pattern))


def _tensors_of_elmo(path: Path) -> dict[str, torch.Tensor]:
    """
    The tensors of AllenNLP's `Elmo`, with the names of ELMoForManyLangs, which began as a copy of
    its code.
    """
    compare_checksums(path)
    tensors = {}
    prefixes = set()
    for key, tensor in torch.load(path, map_location="cpu", weights_only=True).items():
        # Wrappers such as `TimeDistributed` add `_module` to names.
        if match := _NAME.fullmatch(key.replace("_module.", "")):
            prefix, name = match.groups()
            name = name.replace("char_embedding_weights", _CHARACTERS)
            tensors[name.replace("char_conv_", "convolutions.")] = tensor
            prefixes.add(prefix)
    if len(prefixes) != 1:
        got = (
            sorted(prefixes)
            or "none (for the training of a biLM, run `allennlp elmo-export` first)"
        )
        raise ValueError(f"expected the weights of one ELMo of AllenNLP, got {got}: {path}")
    return tensors
