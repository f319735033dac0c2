"""
The weights of a biLM in the public format, which are read and written with the same table of names.

The format is bilm-tf's HDF5 dump; a biLM with dictionaries adds them and a word embedding. Each row
of the table has a parameter's key in the file and the difference between its layout there and ours.
"""

import hashlib
import io
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import h5py
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from elmo_tasks.bilm.character_ids import N_CHARACTER_IDS
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.files.atomic_files import atomic_file

__all__ = [
    "read_arrays",
    "read_softmax",
    "read_weights",
    "weight_names",
    "weights_digest",
    "write_weights",
]

_SAFETENSORS = ".safetensors"
_ENCODER = "character_encoder"
_BILM_PREFIXES = ("char_embed", "CNN", "RNN_", "dictionaries/", "word_embed")

Change = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Layout:
    """Converts an array of the file to a parameter (`from_file`) and back (`to_file`)."""

    from_file: Change
    to_file: Change


SAME = Layout(from_file=lambda array: array, to_file=lambda array: array)
# (inputs, outputs) in the file, (outputs, inputs) in torch.nn.Linear
TRANSPOSED = Layout(from_file=np.transpose, to_file=np.transpose)
# (1, width, character_dim, n_filters) in the file, (n_filters, character_dim, width) in
# torch.nn.Conv1d
CONVOLUTION = Layout(
    from_file=lambda array: array[0].transpose(2, 1, 0),
    to_file=lambda array: array.transpose(2, 1, 0)[np.newaxis],
)
# The file lacks the row for the id 0 (no word), which is zero. Some files have an extra row at the
# end, from bilm-tf trainings with 262 characters; only 261 occur.
CHARACTERS = Layout(
    from_file=lambda array: np.concatenate(
        [np.zeros_like(array[:1]), array[: N_CHARACTER_IDS - 1]]
    ),
    to_file=lambda array: array[1:],
)


@dataclass(frozen=True)
class WeightName:
    """
    A row of the table: the key and the shape of an array in the file; the parameter's name in the
    state of the biLM or softmax; the difference between the two layouts; and the array to use if
    bilm-tf omits the key for these options.
    """

    key: str
    shape: tuple[int, ...]
    parameter: str
    layout: Layout = SAME
    omitted: np.ndarray | None = None


def weight_names(options: BilmOptions) -> Iterator[WeightName]:
    """The table for a biLM with these options: one row per parameter."""
    yield from _embedding_names(options)
    yield from _convolution_names(options)
    yield from _projection_names(options)
    yield from _lstm_names(options)


def _embedding_names(options: BilmOptions) -> Iterator[WeightName]:
    characters = f"{_ENCODER}.embedding.weight"
    dictionaries = options.dictionaries
    if dictionaries is None:
        shape = (N_CHARACTER_IDS - 1, options.character_dim)
        yield WeightName("char_embed", shape, characters, CHARACTERS)
        return
    if dictionaries.n_characters:
        shape = (dictionaries.n_characters, options.character_dim)
        yield WeightName("char_embed", shape, characters)
    if dictionaries.n_words:
        shape = (dictionaries.n_words, dictionaries.word_dim)
        yield WeightName("word_embed", shape, f"{_ENCODER}.word_embedding.weight")


def _convolution_names(options: BilmOptions) -> Iterator[WeightName]:
    """The convolutions and the highways."""
    for i, (width, n_filters_of_width) in enumerate(options.filters):
        shape = (1, width, options.character_dim, n_filters_of_width)
        ours = f"{_ENCODER}.convolutions.{i}"
        yield WeightName(f"CNN/W_cnn_{i}", shape, f"{ours}.weight", CONVOLUTION)
        yield WeightName(f"CNN/b_cnn_{i}", (n_filters_of_width,), f"{ours}.bias")
    n_filters = options.n_filters
    for i in range(options.n_highway):
        for gate in ("transform", "carry"):
            group = f"CNN_high_{i}"
            ours = f"{_ENCODER}.highways.{i}.{gate}"
            yield WeightName(
                f"{group}/W_{gate}", (n_filters, n_filters), f"{ours}.weight", TRANSPOSED
            )
            yield WeightName(f"{group}/b_{gate}", (n_filters,), f"{ours}.bias")


def _projection_names(options: BilmOptions) -> Iterator[WeightName]:
    """The projection of the encoder. bilm-tf has one only where the widths differ."""
    dim = options.projection_dim
    word_dim = 0
    if options.dictionaries is not None:
        word_dim = options.dictionaries.word_dim
    no_projection = None
    no_bias = None
    if options.n_filters == dim:
        no_projection = np.eye(dim, dtype=np.float32)
        no_bias = np.zeros(dim, dtype=np.float32)
    yield WeightName(
        "CNN_proj/W_proj",
        (word_dim + options.n_filters, dim),
        f"{_ENCODER}.projection.weight",
        layout=TRANSPOSED,
        omitted=no_projection,
    )
    yield WeightName("CNN_proj/b_proj", (dim,), f"{_ENCODER}.projection.bias", omitted=no_bias)


def _lstm_names(options: BilmOptions) -> Iterator[WeightName]:
    """The LSTMs. bilm-tf projects their outputs only where the widths differ."""
    dim = options.projection_dim
    cell_dim = options.cell_dim
    no_projection = None
    if cell_dim == dim:
        no_projection = np.eye(dim, dtype=np.float32)
    for number, direction in enumerate(("forward", "backward")):
        for i in range(options.n_layers):
            group = f"RNN_{number}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            ours = f"{direction}_layers.{i}"
            yield WeightName(f"{group}/W_0", (2 * dim, 4 * cell_dim), f"{ours}.kernel")
            yield WeightName(f"{group}/B", (4 * cell_dim,), f"{ours}.bias")
            yield WeightName(
                f"{group}/W_P_0", (cell_dim, dim), f"{ours}.projection", omitted=no_projection
            )


def dictionary_names(options: BilmOptions) -> dict[str, str]:
    """
    The datasets of dictionaries in the file, with the names of their states: the keys as UTF-8
    bytes, in the order of their rows, separated by line feeds.
    """
    dictionaries = options.dictionaries
    names = {}
    if dictionaries is not None and dictionaries.n_characters:
        names["dictionaries/characters"] = "character_encoder.characters._extra_state"
    if dictionaries is not None and dictionaries.n_words:
        names["dictionaries/words"] = "character_encoder.words._extra_state"
    return names


def softmax_names(n_words: int, options: BilmOptions) -> Iterator[WeightName]:
    """The table for an `LmSoftmax` in the file of a biLM with these options."""
    yield WeightName("softmax/W", (n_words, options.projection_dim), "weight")
    yield WeightName("softmax/b", (n_words,), "bias")


def read_arrays(
    path: str | PathLike[str], prefixes: tuple[str, ...] = ("",)
) -> dict[str, np.ndarray]:
    """
    Reads the arrays with names that begin with one of `prefixes`, from safetensors if the file's
    name ends in `.safetensors`, otherwise from HDF5. Raises `ValueError` if the file has a
    different format or is damaged.
    """
    with open(path, "rb"):
        pass  # A missing file raises the system's error here; the libraries' own errors are opaque.
    arrays: dict[str, np.ndarray] = {}
    try:
        if os.fspath(path).endswith(_SAFETENSORS):
            with safe_open(path, framework="numpy") as file:
                for key in file.keys():  # noqa: SIM118
                    if key.startswith(prefixes):
                        arrays[key] = file.get_tensor(key)
            return arrays

        def keep(key: str, node: object) -> None:
            # Skips datasets that would read any local file they name.
            if (
                isinstance(node, h5py.Dataset)
                and key.startswith(prefixes)
                and not (node.external or node.is_virtual)
            ):
                arrays[key] = node[...]

        with h5py.File(path, "r") as file:
            # `visititems` skips links, which could lead out of the file too.
            file.visititems(keep)
            return arrays
    except (OSError, RuntimeError, KeyError, SafetensorError) as error:
        raise ValueError(
            f"expected a whole file of weights, HDF5 or safetensors ({error}): {path}"
        ) from None


def read_weights(weight_file: str | PathLike[str], options: BilmOptions) -> dict[str, torch.Tensor]:
    """
    The state for `Bilm.load_state_dict`, float32, from a local file of float16 or float32. A
    `ValueError` names the key that differs.
    """
    # The file may also hold a softmax, which can be larger than the biLM.
    arrays = read_arrays(weight_file, _BILM_PREFIXES)
    names = list(weight_names(options))
    dictionaries = dictionary_names(options)
    for name in names:
        if name.omitted is not None:
            arrays.setdefault(name.key, name.omitted)
    expected = {name.key for name in names} | set(dictionaries)
    if set(arrays) != expected:
        key = min(expected ^ set(arrays))
        problem = "missing from" if key in expected else "unexpected in"
        raise ValueError(
            f"'{key}' is {problem} the weights of a biLM with these options: {weight_file}"
        )
    state = {name.parameter: _tensor(arrays[name.key], name, weight_file) for name in names}
    for key, state_name in dictionaries.items():
        state[state_name] = torch.from_numpy(arrays[key])
    return state


def read_softmax(
    weight_file: str | PathLike[str], options: BilmOptions
) -> dict[str, torch.Tensor] | None:
    """
    The state for `LmSoftmax.load_state_dict`, float32, from a weight file that also has a softmax,
    such as the published `elmo_2x4096_512_2048cnn_2xhighway_softmax_weights.hdf5`; `None` if there
    is no softmax.
    """
    arrays = read_arrays(weight_file, ("softmax/",))
    if not arrays:
        return None
    n_words = max(array.shape[0] for array in arrays.values())
    names = list(softmax_names(n_words, options))
    if set(arrays) != {name.key for name in names}:
        raise ValueError(
            f"expected softmax/W and softmax/b, got {', '.join(arrays)}: {weight_file}"
        )
    return {name.parameter: _tensor(arrays[name.key], name, weight_file) for name in names}


def _tensor(array: np.ndarray, name: WeightName, weight_file: str | PathLike[str]) -> torch.Tensor:
    n_rows, *row_shape = name.shape
    has_spare_row = name.layout is CHARACTERS and array.shape == (n_rows + 1, *row_shape)
    if array.shape != name.shape and not has_spare_row:
        raise ValueError(
            f"expected the shape {name.shape} for '{name.key}', got {array.shape}: {weight_file}"
        )
    parameter = name.layout.from_file(array.astype(np.float32, copy=False))
    return torch.from_numpy(np.ascontiguousarray(parameter))


def write_weights(
    weight_file: str | PathLike[str],
    state: Mapping[str, torch.Tensor],
    options: BilmOptions,
    *,
    softmax: Mapping[str, torch.Tensor] | None = None,
    dtype: torch.dtype = torch.float32,
    compression: str | None = "gzip",
) -> None:
    """
    Writes the state of a biLM, as safetensors if the file's name ends in `.safetensors`, otherwise
    as HDF5 with this compression. See `Bilm.save`.
    """
    arrays = {name.key: _array(state, name, dtype) for name in weight_names(options)}
    for key, state_name in dictionary_names(options).items():
        arrays[key] = state[state_name].numpy()
    if softmax is not None:
        for name in softmax_names(len(softmax["bias"]), options):
            arrays[name.key] = _array(softmax, name, dtype)
    if os.fspath(weight_file).endswith(_SAFETENSORS):
        content = save({key: np.ascontiguousarray(array) for key, array in arrays.items()})
    else:
        # Built in memory, because HDF5 ends the process if the disk is full.
        buffer = io.BytesIO()
        # The format of HDF5 1.10 also has checksums for the data between the arrays.
        with h5py.File(buffer, "w", libver=("v110", "v110")) as file:
            for key, array in arrays.items():
                file.create_dataset(key, data=array, compression=compression, fletcher32=True)
        content = buffer.getvalue()
    with atomic_file(Path(weight_file)) as temporary:
        temporary.write_bytes(content)


def _array(state: Mapping[str, torch.Tensor], name: WeightName, dtype: torch.dtype) -> np.ndarray:
    return name.layout.to_file(state[name.parameter].detach().cpu().to(dtype).numpy())


def weights_digest(options: object, weights: Mapping[str, torch.Tensor]) -> bytes:
    """
    A 32-byte digest of the options and of the name, type, shape and values of each weight, by which
    an index, a job or a cache recognises the weights that it was made with.
    """
    digest = hashlib.blake2b(repr(options).encode(), digest_size=32)
    for name, weight in sorted(weights.items()):
        digest.update(repr((name, weight.dtype, tuple(weight.shape))).encode())
        digest.update(weight.detach().cpu().flatten().view(torch.uint8).numpy().data)
    return digest.digest()
