"""The files of a biLM, in whatever format they are: the public one, or that of ELMoForManyLangs."""

from os import PathLike
from pathlib import Path

import torch

from elmo_tasks.bilm import weights
from elmo_tasks.bilm.many_langs import model_folder
from elmo_tasks.bilm.many_langs import weights as many_langs_weights
from elmo_tasks.bilm.options import BilmOptions

__all__ = ["all_weight_files", "model_files", "read_any_options", "read_any_weights"]


def model_files(folder: Path) -> tuple[Path, Path] | None:
    """
    The files of a model of ELMoForManyLangs that have its options and its weights, for the two functions below; `None`
    if the folder has something else.
    """
    if not model_folder.is_model_folder(folder):
        return None
    return folder / model_folder.CONFIG, folder / model_folder.ENCODER


def all_weight_files(weight_file: Path) -> list[Path]:
    """A file of weights; of ELMoForManyLangs' `encoder.pkl` also those next to it that the vectors depend on."""
    if weight_file.name == model_folder.ENCODER and model_folder.is_model_folder(weight_file.parent):
        return model_folder.weight_files(weight_file.parent)
    return [weight_file]


def read_any_options(options_file: str | PathLike[str]) -> BilmOptions:
    """
    Reads an `options.json`, or what the `config.json` of a model of ELMoForManyLangs means.

    # Raises

    `ValueError`
        If the file is neither; `OSError` if it, or another one that it needs, cannot be opened.
    """
    if Path(options_file).name == model_folder.CONFIG and model_folder.is_model_folder(Path(options_file).parent):
        return model_folder.read_options(options_file)
    return BilmOptions.from_file(options_file)


def read_any_weights(weight_file: str | PathLike[str], options: BilmOptions) -> dict[str, torch.Tensor]:
    """
    Reads the weights of a biLM, from HDF5, safetensors or the `encoder.pkl` of ELMoForManyLangs.

    # Returns

    `Dict[str, torch.Tensor]`
        The state for `Bilm.load_state_dict`, float32.

    # Raises

    `ValueError`
        If they do not fit the options, or a file is damaged; `OSError` if one cannot be opened.
    """
    if Path(weight_file).suffix == ".pkl":
        if options.dictionaries is None:
            raise ValueError(
                f"{weight_file}: the weights of ELMoForManyLangs need the options of their own model, but these are of "
                "a biLM without dictionaries"
            )
        return many_langs_weights.read_weights(weight_file, options)
    return weights.read_weights(weight_file, options)
