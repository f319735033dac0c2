"""The indexes in which the demo looks for neighbours, one for each layer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from elmo_tasks.analysis import NeighborIndex, build_index, check_bilm
from elmo_tasks.data import LmText
from elmo_tasks.shipped import FIXTURES
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["LayerIndex", "build_indexes", "open_indexes"]

_SENTENCES = Path(__file__).with_name("sentences.txt")


@dataclass(frozen=True)
class LayerIndex:
    """An index, and the name of one of its layers in it."""

    index: NeighborIndex
    name: Any


def open_indexes(folders: Sequence[Path], elmo: Elmo, bilm: str) -> dict[int, LayerIndex]:
    """
    # Parameters

    folders
        As `allennlp elmo-neighbors index` makes them.
    elmo, bilm
        The biLM of the demo, and its name, folder or URL.

    # Returns

    `Dict[int, LayerIndex]`
        The index of each layer that has one.

    # Raises

    `ValueError`
        If an index is damaged, of another biLM, of the mix of layers, or of a layer that another one has.
    `FileNotFoundError`
        If there is no index.
    """
    indexes: dict[int, LayerIndex] = {}
    for folder in folders:
        index = NeighborIndex(folder)
        check_bilm(index, elmo, bilm)
        for layer in index.layers:
            if layer == "mix":
                raise ValueError(
                    f"an index must be of single layers, but '{folder}' is of their mix: build it with --layer 0, 1, "
                    "... or top"
                )
            number = elmo.n_layers - 1 if layer == "top" else layer
            if number in indexes:
                raise ValueError(
                    f"there must be one index for a layer, but '{indexes[number].index.folder}' and '{folder}' are "
                    f"both of layer {number}: name one of them"
                )
            indexes[number] = LayerIndex(index, layer)
    return dict(sorted(indexes.items()))


def build_indexes(elmo: Elmo, folder: Path) -> dict[int, LayerIndex]:
    """
    An index of all layers for the small text that ships.

    # Parameters

    elmo
        The biLM.
    folder
        The new index.
    """
    layers = list(range(elmo.n_layers))
    index = build_index(elmo, _shipped_text(), folder, layer=layers, progress=False)
    return {layer: LayerIndex(index, layer) for layer in layers}


def _shipped_text() -> Iterator[list[str]]:
    # Small, since it is computed at each start.
    return chain(LmText(FIXTURES / "lm" / "dev.txt"), LmText(_SENTENCES))
