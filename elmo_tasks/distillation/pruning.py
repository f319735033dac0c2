"""The weights that a smaller biLM can have of a larger one."""

from itertools import accumulate

import torch
from torch import nn

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.character_encoder import CharacterEncoder
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm

__all__ = ["copy_largest"]

_Places = torch.Tensor | slice


@torch.no_grad()
def copy_largest(small: Bilm, large: Bilm) -> None:
    """
    Copies a part of the weights of a biLM into one with fewer cells and filters, which is pruning by magnitude (Han et
    al. 2015) of whole units: of each LSTM the cells, and of each width of filters the filters, whose weights in the
    projection have the largest norm. It has to be trained further, and a projection of cells is multiplied by the share
    of them that is left: from smaller outputs it learns faster.

    # Parameters

    small
        Is changed.
    large
        A biLM that reads bytes.

    # Raises

    `ValueError`
        If the small biLM has more cells or filters than the large one, or differs in something else.
    """
    _check(small.options, large.options)
    encoders = small.character_encoder, large.character_encoder
    assert isinstance(encoders[0], CharacterEncoder) and isinstance(encoders[1], CharacterEncoder)
    _copy_encoder(*encoders)
    for lstms in ("forward_layers", "backward_layers"):
        for target, source in zip(getattr(small, lstms), getattr(large, lstms), strict=True):
            _copy_lstm(target, source)


def _check(small: BilmOptions, large: BilmOptions) -> None:
    same = {
        "lstm.projection_dim": (small.projection_dim, large.projection_dim),
        "lstm.n_layers": (small.n_layers, large.n_layers),
        "lstm.cell_clip": (small.cell_clip, large.cell_clip),
        "lstm.proj_clip": (small.projection_clip, large.projection_clip),
        "lstm.use_skip_connections": (small.residual, large.residual),
        "char_cnn.embedding.dim": (small.character_dim, large.character_dim),
        "char_cnn.n_highway": (small.n_highway, large.n_highway),
        "char_cnn.activation": (small.activation, large.activation),
        "the widths in char_cnn.filters": tuple([width for width, _ in each.filters] for each in (small, large)),
    }
    for name, (found, expected) in same.items():
        if found != expected:
            raise ValueError(f"{name} must be {expected}, as in the larger biLM, but is {found}")
    pairs = zip(small.filters, large.filters, strict=True)
    fewer = [
        ("lstm.dim", small.cell_dim, large.cell_dim),
        *((f"the filters of width {width} in char_cnn.filters", few, many) for (width, few), (_, many) in pairs),
    ]
    for name, found, most in fewer:
        if found > most:
            raise ValueError(f"{name} must be at most {most}, as in the larger biLM, but is {found}")


def _copy_encoder(small: CharacterEncoder, large: CharacterEncoder) -> None:
    _copy_layer(small.get_submodule("embedding"), large.get_submodule("embedding"))
    numbers = [[len(layer.get_parameter("bias")) for layer in each.convolutions] for each in (small, large)]
    # Shape of each: (n_filters of a width,)
    norms = large.projection.weight.norm(dim=0).split(numbers[1])
    kept = [_largest(norm, number) for norm, number in zip(norms, numbers[0], strict=True)]
    for target, source, filters in zip(small.convolutions, large.convolutions, kept, strict=True):
        _copy_layer(target, source, filters)
    starts = accumulate(numbers[1], initial=0)
    units = torch.cat([start + filters for start, filters in zip(starts, kept, strict=False)])
    for target, source in zip(small.highways, large.highways, strict=True):
        for name in ("transform", "carry"):
            _copy_layer(target.get_submodule(name), source.get_submodule(name), units, units)
    _copy_layer(small.projection, large.projection, slice(None), units)


def _copy_layer(
    small: nn.Module, large: nn.Module, rows: _Places = slice(None), columns: _Places = slice(None)
) -> None:
    for name, weight in small.named_parameters():
        of_large = large.get_parameter(name)[rows]
        weight.copy_(of_large[:, columns] if of_large.dim() > 1 else of_large)


def _copy_lstm(small: ProjectedLstm, large: ProjectedLstm) -> None:
    cells = _largest(large.projection.norm(dim=1), len(small.projection))
    small.projection.copy_(large.projection[cells] * (len(small.projection) / len(large.projection)))
    # Shape of each: (..., 4, n_cells), the gates one after the other.
    small.kernel.copy_(large.kernel.unflatten(-1, (4, -1))[..., cells].flatten(-2))
    small.bias.copy_(large.bias.unflatten(-1, (4, -1))[..., cells].flatten(-2))


def _largest(norms: torch.Tensor, number: int) -> torch.Tensor:
    """The places of the largest numbers, in their order there."""
    return norms.topk(number).indices.sort().values
