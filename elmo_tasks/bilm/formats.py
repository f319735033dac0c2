"""The options and the weights of a biLM, from files in any format."""

from os import PathLike
from pathlib import Path

import torch

from elmo_tasks.bilm.many_langs import model_files, options_of_model, weights_of_model
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.weights import read_weights

__all__ = ["read_any_options", "read_any_weights"]


def read_any_options(options_file: str | PathLike[str]) -> BilmOptions:
    """The options in an `options.json`, or in the `config.json` of an ELMoForManyLangs model."""
    path = Path(options_file)
    files = model_files(path.parent)
    return options_of_model(path) if files and path.name == files[0].name else BilmOptions.from_file(path)


def read_any_weights(weight_file: str | PathLike[str], options: BilmOptions) -> dict[str, torch.Tensor]:
    """The state for `Bilm.load_state_dict`, from HDF5, safetensors or the `encoder.pkl` of ELMoForManyLangs."""
    path = Path(weight_file)
    return weights_of_model(path.parent, options) if path.suffix == ".pkl" else read_weights(path, options)
