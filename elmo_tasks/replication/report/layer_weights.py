"""Weights of the layers in trained models, for Figure 2."""

import pickle
from pathlib import Path
from typing import Any, NamedTuple

from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import extracted_archive

__all__ = ["LayerWeight", "layer_weights"]

_ENDING = ".mix.layer_weights"


class LayerWeight(NamedTuple):
    """
    # Parameters

    place
        `"input"` or `"output"`.
    layer
        0 is the context-insensitive one.
    weight
        After the softmax.
    gamma
        The scale of the mix.
    """

    place: str
    layer: int
    weight: float
    gamma: float


def layer_weights(archive: Path) -> list[LayerWeight]:
    """
    # Parameters

    archive
        A `model.tar.gz`.

    # Returns

    `List[LayerWeight]`
        Of each place at which the model mixes layers; empty for a model without ELMo, or with a single layer.

    # Raises

    `ValueError`
        If it is not a whole archive.
    """
    try:
        return _layer_weights(_weights(archive))
    except (OSError, KeyError, ValueError, RuntimeError, AttributeError, TypeError) as error:
        raise ValueError(f"{archive} must be the whole archive of a trained model, but: {error}") from None


def _layer_weights(weights: dict[str, Any]) -> list[LayerWeight]:
    found = []
    for name in sorted(weights):
        if name.endswith(_ENDING):
            place = "output" if name.startswith("output_embedder.") else "input"
            gamma = weights[name.removesuffix("layer_weights") + "gamma"].item()
            normalized = weights[name].double().softmax(0).tolist()
            found += [LayerWeight(place, layer, weight, gamma) for layer, weight in enumerate(normalized)]
    return found


def _weights(archive: Path) -> dict[str, Any]:
    import torch

    try:
        # Read to the checksum at its end, which torch does not have.
        with extracted_archive(archive) as folder:
            weights: dict[str, Any] = torch.load(Path(folder, "weights.th"), map_location="cpu", weights_only=True)
    except (ConfigurationError, EOFError, pickle.UnpicklingError) as error:
        raise ValueError(str(error)) from error
    return weights
