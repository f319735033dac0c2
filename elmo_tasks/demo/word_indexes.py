"""The indexes in which the demo looks for neighbours, one for each layer."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from elmo_tasks.analysis import NeighborIndex, build_index
from elmo_tasks.data import LmText
from elmo_tasks.shipped import FIXTURES
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["build_indexes", "open_indexes"]

_SENTENCES = Path(__file__).with_name("sentences.txt")


def open_indexes(folders: Sequence[Path], n_layers: int, weights: str) -> dict[int, NeighborIndex]:
    """
    # Parameters

    folders
        As `allennlp elmo-neighbors index` makes them.
    n_layers
        Layers of the biLM.
    weights
        SHA-256 of the weights of the biLM.

    # Returns

    `Dict[int, NeighborIndex]`
        The index of each layer that has one.

    # Raises

    `ValueError`
        If an index is damaged, of another biLM, of the mix of layers, or of a layer that another one has.
    `FileNotFoundError`
        If there is no index.
    """
    indexes: dict[int, NeighborIndex] = {}
    for folder in folders:
        index = NeighborIndex(folder)
        layer = index.about["layer"]
        if index.about.get("weights") != weights:
            raise ValueError(
                f"an index must be of the biLM of the demo, but '{folder}' was made with another one, "
                f"{index.about.get('bilm', 'which it does not name')!r}: name that one with --bilm, or build the index "
                "again with `allennlp elmo-neighbors index`"
            )
        if layer == "mix":
            raise ValueError(
                f"an index must be of one layer, but '{folder}' is of their mix: build it with --layer 0, 1, ... or top"
            )
        number = n_layers - 1 if layer == "top" else layer
        if number in indexes:
            raise ValueError(
                f"there must be one index for a layer, but '{indexes[number].folder}' and '{folder}' are both of layer "
                f"{number}: name one of them"
            )
        indexes[number] = index
    return dict(sorted(indexes.items()))


def build_indexes(elmo: Elmo, folder: Path) -> dict[int, NeighborIndex]:
    """
    Indexes of all layers for the small text that ships.

    # Parameters

    elmo
        The biLM; with a layer cache the text is computed once for all layers.
    folder
        Where to write them.
    """
    return {
        layer: build_index(elmo, _shipped_text(), folder / f"layer-{layer}", layer=layer, progress=False)
        for layer in range(elmo.n_layers)
    }


def _shipped_text() -> Iterator[list[str]]:
    # Small, since it is computed at each start.
    return chain(LmText(FIXTURES / "lm" / "dev.txt"), LmText(_SENTENCES))
