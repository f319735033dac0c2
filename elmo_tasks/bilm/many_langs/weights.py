"""The weights of a model of ELMoForManyLangs: one table of their names, in `Bilm` and in the model's two files."""

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import torch

from elmo_tasks.bilm.dictionary_encoder import Dictionary
from elmo_tasks.bilm.many_langs.model_folder import ENCODER, TOKEN_EMBEDDER, dictionaries_of
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.files.torch_zip import check_zip, reason_of

__all__ = ["read_weights"]

_State = Mapping[str, torch.Tensor]
_DTYPES = (torch.float32, torch.float16)


@dataclass(frozen=True)
class _Name:
    """
    A row of the table: a parameter of `Bilm`, made from tensors of one file.

    # Parameters

    parameter
        Its name in `Bilm.state_dict()`.
    file
        The file.
    tensors
        Names and shapes of the tensors there.
    make
        From the tensors to the parameter.
    """

    parameter: str
    file: str
    tensors: tuple[tuple[str, tuple[int, ...]], ...]
    make: Callable[..., torch.Tensor] = lambda tensor: tensor


def read_weights(encoder_file: str | PathLike[str], options: BilmOptions) -> dict[str, torch.Tensor]:
    """
    Reads the weights of a model, and its dictionaries.

    # Parameters

    encoder_file
        The `encoder.pkl` in the folder of the model, in torch's format of before 2020 or in today's. The others are
        next to it.
    options
        The options of the model.

    # Returns

    `Dict[str, torch.Tensor]`
        The state for `Bilm.load_state_dict`, float32.

    # Raises

    `ValueError`
        If a file holds something else than tensors, which is not loaded, or is damaged; or if a tensor is missing, is
        not finite or has a shape that does not fit the options and the dictionaries.
    `FileNotFoundError`
        If a file is missing, with its name.
    """
    folder = Path(encoder_file).parent
    found = {name: _load(folder, name) for name in (TOKEN_EMBEDDER, ENCODER)}
    state = {}
    for name in _names(options):
        state[name.parameter] = name.make(
            *(_tensor(found[name.file], folder / name.file, key, shape) for key, shape in name.tensors)
        ).contiguous()
    for kind, keys in zip(("characters", "words"), dictionaries_of(folder, options), strict=True):
        if keys:
            state[f"character_encoder.{kind}._extra_state"] = Dictionary.state_of(keys)
    return state


def _names(options: BilmOptions) -> Iterator[_Name]:
    sizes, dim, cell = options.dictionaries, options.projection_dim, options.cell_dim
    assert sizes is not None

    def of_token(parameter: str, key: str, *shape: int) -> _Name:
        return _Name(f"character_encoder.{parameter}", TOKEN_EMBEDDER, ((key, shape),))

    if sizes.n_words:
        key = "word_emb_layer.embedding.weight"
        yield of_token("word_embedding.weight", key, sizes.n_words, sizes.word_dim)
    if sizes.n_characters:
        key = "char_emb_layer.embedding.weight"
        yield of_token("embedding.weight", key, sizes.n_characters, options.character_dim)
    for i, (width, number) in enumerate(options.filters):
        yield of_token(f"convolutions.{i}.weight", f"convolutions.{i}.weight", number, options.character_dim, width)
        yield of_token(f"convolutions.{i}.bias", f"convolutions.{i}.bias", number)
    for i in range(options.n_highway):
        for kind, shape in (("weight", (2 * options.n_filters, options.n_filters)), ("bias", (2 * options.n_filters,))):
            tensors = ((f"highways._layers.{i}.{kind}", shape),)
            ours = f"character_encoder.highways.{i}"
            # One matrix there: the transform, and the gate of what is carried; ours is the gate of the transform.
            yield _Name(f"{ours}.transform.{kind}", TOKEN_EMBEDDER, tensors, lambda both: both.chunk(2)[0])
            yield _Name(f"{ours}.carry.{kind}", TOKEN_EMBEDDER, tensors, lambda both: -both.chunk(2)[1])
    yield of_token("projection.weight", "projection.weight", dim, sizes.word_dim + options.n_filters)
    yield of_token("projection.bias", "projection.bias", dim)
    for direction in ("forward", "backward"):
        for i in range(options.n_layers):
            theirs, ours = f"{direction}_layer_{i}", f"{direction}_layers.{i}"
            of_input = (f"{theirs}.input_linearity.weight", (4 * cell, dim))
            of_state = (f"{theirs}.state_linearity.weight", (4 * cell, dim))
            yield _Name(f"{ours}.kernel", ENCODER, (of_input, of_state), _kernel)
            yield _Name(f"{ours}.bias", ENCODER, ((f"{theirs}.state_linearity.bias", (4 * cell,)),), _bias)
            projection = (f"{theirs}.state_projection.weight", (dim, cell))
            yield _Name(f"{ours}.projection", ENCODER, (projection,), lambda weight: weight.t())


def _in_our_order(gates: torch.Tensor) -> torch.Tensor:
    """Gates along the first dimension: input, forget, memory, output there; input, memory, forget, output here."""
    i, f, g, o = gates.chunk(4)
    return torch.cat([i, g, f, o])


def _kernel(of_input: torch.Tensor, of_state: torch.Tensor) -> torch.Tensor:
    return torch.cat([_in_our_order(of_input).t(), _in_our_order(of_state).t()])


def _bias(bias: torch.Tensor) -> torch.Tensor:
    ours = _in_our_order(bias).clone()
    # `ProjectedLstm` adds the 1 of the forget gate, which is a part of the bias there.
    ours.chunk(4)[2].sub_(1.0)
    return ours


def _load(folder: Path, name: str) -> _State:
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"the folder of a model of ELMoForManyLangs must have {TOKEN_EMBEDDER} and {ENCODER}, but '{folder}' has "
            f"no {name}: unpack the whole archive into one folder"
        )
    try:
        check_zip(path)
        # Without pickle's code, and wherever the tensors were when they were saved.
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (
        pickle.UnpicklingError,
        EOFError,
        LookupError,
        TypeError,
        AttributeError,
        RuntimeError,
        ValueError,
    ) as error:
        raise ValueError(
            f"{path} must hold tensors alone, and be whole, but does not ({reason_of(error)}): it is damaged, or was "
            "made to run code, which was not run. Download the model again"
        ) from None
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise ValueError(f"{path} must hold tensors by their names, but holds something else")
    return state


def _tensor(state: _State, path: Path, key: str, shape: tuple[int, ...]) -> torch.Tensor:
    if key not in state:
        raise ValueError(f"{path}: the tensor '{key}' is missing: the file is that of another kind of model")
    tensor = state[key]
    if tuple(tensor.shape) != shape or tensor.dtype not in _DTYPES:
        hint = ""
        if "_emb_layer" in key:
            name = "char.dic" if key.startswith("char") else "word.dic"
            hint = f": {name} has {shape[0]} keys, so that one of the two files is that of another model"
        raise ValueError(
            f"{path}: '{key}' must have the shape {shape} and be float32 by the options and the dictionaries, but has "
            f"{tuple(tensor.shape)} and is {str(tensor.dtype).removeprefix('torch.')}{hint}"
        )
    if not torch.isfinite(tensor).all():
        raise ValueError(f"{path}: '{key}' must hold finite numbers, but holds NaN or infinity")
    return tensor.float()
