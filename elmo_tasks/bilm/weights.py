"""
The weights of a biLM in the public format: one table of names, read and written by the same rows.

The format is bilm-tf's HDF5 dump; a biLM with dictionaries has these in it too, and an embedding of words. Each row of
the table says where a parameter lies in the file and how its layout there differs from ours; nothing else in the
project knows the names of the file.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike

import numpy as np
import torch

from elmo_tasks.bilm.characters import N_CHARACTER_IDS
from elmo_tasks.bilm.dictionary_encoder import CHARACTER_KEYS, WORD_KEYS
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.weight_file import StoredArrays, open_weights, write_arrays

__all__ = [
    "WeightName",
    "dictionary_names",
    "read_softmax",
    "read_weights",
    "softmax_names",
    "weight_names",
    "write_weights",
]

# The note in a file with a softmax: the SHA-256 of its words.
_WORDS_NOTE = "vocab_sha256"

Change = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Layout:
    """How an array of the file becomes a parameter (`read`) and the other way round (`write`)."""

    read: Change
    write: Change


SAME = Layout(read=lambda array: array, write=lambda array: array)
# (inputs, outputs) there, (outputs, inputs) in torch.nn.Linear
TRANSPOSED = Layout(read=np.transpose, write=np.transpose)
# (1, width, character_dim, n_filters) there, (n_filters, character_dim, width) in torch.nn.Conv1d
CONVOLUTION = Layout(
    read=lambda array: array[0].transpose(2, 1, 0), write=lambda array: array.transpose(2, 1, 0)[np.newaxis]
)
# The file does not have the row of the id 0 (no word), which is zero. Some have a row too many at the end: bilm-tf
# trained with 262 characters, of which 261 occur.
CHARACTERS = Layout(
    read=lambda array: np.concatenate([np.zeros_like(array[:1]), array[: N_CHARACTER_IDS - 1]]),
    write=lambda array: array[1:],
)


@dataclass(frozen=True)
class WeightName:
    """
    A row of the table.

    # Parameters

    key
        The dataset's path in the HDF5 file.
    shape
        Its shape there.
    parameter
        The parameter's name in `Bilm.state_dict()`, or in that of the softmax.
    layout
        The difference between the layouts of the two sides.
    """

    key: str
    shape: tuple[int, ...]
    parameter: str
    layout: Layout = SAME


def weight_names(options: BilmOptions) -> Iterator[WeightName]:
    """The table for a biLM with these options: one row for each parameter."""
    encoder = "character_encoder"
    n_filters, dim, cell = options.n_filters, options.projection_dim, options.cell_dim
    of_own, word_dim = options.dictionaries, 0
    characters = f"{encoder}.embedding.weight"
    if of_own is None:
        yield WeightName("char_embed", (N_CHARACTER_IDS - 1, options.character_dim), characters, CHARACTERS)
    else:
        word_dim = of_own.word_dim
        if of_own.n_characters:
            yield WeightName("char_embed", (of_own.n_characters, options.character_dim), characters)
        if of_own.n_words:
            yield WeightName("word_embed", (of_own.n_words, word_dim), f"{encoder}.word_embedding.weight")
    for i, (width, number) in enumerate(options.filters):
        shape = (1, width, options.character_dim, number)
        yield WeightName(f"CNN/W_cnn_{i}", shape, f"{encoder}.convolutions.{i}.weight", CONVOLUTION)
        yield WeightName(f"CNN/b_cnn_{i}", (number,), f"{encoder}.convolutions.{i}.bias")
    for i in range(options.n_highway):
        for gate in ("transform", "carry"):
            group, ours = f"CNN_high_{i}", f"{encoder}.highways.{i}.{gate}"
            yield WeightName(f"{group}/W_{gate}", (n_filters, n_filters), f"{ours}.weight", TRANSPOSED)
            yield WeightName(f"{group}/b_{gate}", (n_filters,), f"{ours}.bias")
    yield WeightName("CNN_proj/W_proj", (word_dim + n_filters, dim), f"{encoder}.projection.weight", TRANSPOSED)
    yield WeightName("CNN_proj/b_proj", (dim,), f"{encoder}.projection.bias")
    for number, direction in enumerate(("forward", "backward")):
        for i in range(options.n_layers):
            group, ours = f"RNN_{number}/RNN/MultiRNNCell/Cell{i}/LSTMCell", f"{direction}_layers.{i}"
            yield WeightName(f"{group}/W_0", (2 * dim, 4 * cell), f"{ours}.kernel")
            yield WeightName(f"{group}/B", (4 * cell,), f"{ours}.bias")
            yield WeightName(f"{group}/W_P_0", (cell, dim), f"{ours}.projection")


def dictionary_names(options: BilmOptions) -> dict[str, tuple[str, int]]:
    """
    The dictionaries in the file of a biLM with these options: for each dataset the name of the state, and how many
    keys it has. A dataset holds bytes: the keys in UTF-8, in the order of their rows, with line feeds between them.
    """
    of_own = options.dictionaries
    sizes = {} if of_own is None else {"characters": of_own.n_characters, "words": of_own.n_words}
    return {
        f"dictionaries/{kind}": (f"character_encoder.{kind}._extra_state", n_keys)
        for kind, n_keys in sizes.items()
        if n_keys
    }


def softmax_names(n_words: int, options: BilmOptions) -> Iterator[WeightName]:
    """The table for an `LmSoftmax` in the file of a biLM with these options."""
    yield WeightName("softmax/W", (n_words, options.projection_dim), "weight")
    yield WeightName("softmax/b", (n_words,), "bias")


def read_weights(weight_file: str | PathLike[str], options: BilmOptions) -> dict[str, torch.Tensor]:
    """
    Reads a weight file.

    # Parameters

    weight_file
        A local file in the public format, HDF5 or (if its name ends so) safetensors with the same names: float16 or
        float32, compressed or not.
    options
        The shape of the biLM that the file should hold.

    # Returns

    `Dict[str, torch.Tensor]`
        The state for `Bilm.load_state_dict`, float32.

    # Raises

    `ValueError`
        If the file is damaged or not HDF5, lacks a key, or has layers that the options do not have, an array of another
        shape, or values that are not finite. `OSError` if it cannot be opened.
    """
    with open_weights(weight_file) as file:
        names = list(weight_names(options))
        dictionaries = dictionary_names(options)
        _check_keys(file, weight_file, {*(name.key for name in names), *dictionaries})
        state = {name.parameter: _read(file, weight_file, name) for name in names}
        for key, (parameter, n_keys) in dictionaries.items():
            state[parameter] = _read_dictionary(file, weight_file, key, n_keys)
        return state


def read_softmax(
    weight_file: str | PathLike[str], options: BilmOptions, words: Iterable[str] | None = None
) -> dict[str, torch.Tensor] | None:
    """
    Reads the softmax that a weight file may hold besides the biLM, as in the published
    `elmo_2x4096_512_2048cnn_2xhighway_softmax_weights.hdf5`.

    # Parameters

    weight_file
        As for `read_weights`.
    options
        The shape of the biLM.
    words
        Those that the softmax should predict, in their order. The published files do not say theirs; those of
        `write_weights` do.

    # Returns

    `Optional[Dict[str, torch.Tensor]]`
        The state for `LmSoftmax.load_state_dict`, float32: `weight` of shape `(n_words, projection_dim)` and `bias` of
        shape `(n_words,)`. `None` if the file has no softmax.

    # Raises

    `ValueError`
        If the file is damaged or not HDF5, has only one of the two, or their shapes do not match each other or the
        biLM, or they hold values that are not finite, or predict other words. `OSError` if it cannot be opened.
    """
    with open_weights(weight_file) as file:
        keys = {key for key in file.names() if key.startswith("softmax/")}
        if not keys:
            return None
        # Without rows, a shape is wrong for any number of words.
        names = list(softmax_names(max(next(iter(file.shape(key)), 0) for key in keys), options))
        if missing := [name.key for name in names if name.key not in keys]:
            raise ValueError(
                f"{weight_file}: a softmax must have {' and '.join(name.key for name in names)}, but '{missing[0]}' is "
                "missing: the file is incomplete"
            )
        written_with = file.note(_WORDS_NOTE)
        if words is not None and written_with is not None and written_with != _digest(words):
            raise ValueError(
                f"the softmax in {weight_file} must predict the words of its own vocab.txt, but was trained with "
                "others or in another order: take the vocab.txt that was written with it"
            )
        return {name.parameter: _read(file, weight_file, name) for name in names}


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


# Options that are numbers of layers, and the keys that show these numbers.
_COUNTS = {
    "lstm.n_layers": re.compile(r"RNN_0/RNN/MultiRNNCell/Cell\d+/"),
    "char_cnn.n_highway": re.compile(r"CNN_high_\d+/"),
    "the length of char_cnn.filters": re.compile(r"CNN/W_cnn_\d+"),
}


_OF_BILM = ("CNN", "RNN_", "dictionaries/", "word_embed")


def _check_keys(file: StoredArrays, weight_file: str | PathLike[str], expected: set[str]) -> None:
    found = file.names()
    if missing := sorted(expected - found):
        raise ValueError(
            f"{weight_file}: {len(missing)} of the {len(expected)} keys that the options ask for are missing, "
            f"the first is '{missing[0]}': {_difference(expected, found)}"
        )
    # The file may also hold a softmax; but more layers of the biLM mean that the options are those of another biLM.
    if surplus := sorted(key for key in found - expected if key.startswith(_OF_BILM)):
        raise ValueError(
            f"{weight_file}: the file holds '{surplus[0]}', which a biLM with these options does not have: "
            f"{_difference(expected, found)}"
        )


def _difference(expected: set[str], found: set[str]) -> str:
    """The option that differs in the file, as far as the keys show."""
    for option, pattern in _COUNTS.items():
        by_options, in_file = (len({m[0] for key in keys if (m := pattern.match(key))}) for keys in (expected, found))
        if by_options != in_file and in_file:
            return f"{option} is {by_options} in the options, but {in_file} in the file"
    return "the options are those of another biLM, or the file is incomplete"


def _read(file: StoredArrays, weight_file: str | PathLike[str], name: WeightName) -> torch.Tensor:
    shape = file.shape(name.key)
    with_spare_row = name.layout is CHARACTERS and shape == (name.shape[0] + 1, *name.shape[1:])
    if shape != name.shape and not with_spare_row:
        raise ValueError(
            f"{weight_file}: '{name.key}' must have the shape {name.shape} by the options and the other keys, "
            f"but has {shape}"
        )
    return torch.from_numpy(np.ascontiguousarray(name.layout.read(file.read(name.key))))


def _read_dictionary(file: StoredArrays, weight_file: str | PathLike[str], key: str, n_keys: int) -> torch.Tensor:
    found = file.read_bytes(key)
    try:
        keys = found.tobytes().decode("utf-8", "surrogatepass").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{weight_file}: '{key}' must be UTF-8, but {error}") from None
    if len(set(keys)) != n_keys or len(keys) != n_keys:
        raise ValueError(
            f"{weight_file}: '{key}' must hold {n_keys} different keys by the options, but holds {len(set(keys))}"
        )
    needed = CHARACTER_KEYS if key.endswith("characters") else WORD_KEYS
    if missing := [name for name in needed if name not in keys]:
        raise ValueError(f"{weight_file}: '{key}' must have the key '{missing[0]}', but has not")
    return torch.from_numpy(np.ascontiguousarray(found))


def write_weights(
    weight_file: str | PathLike[str],
    state: Mapping[str, torch.Tensor],
    options: BilmOptions,
    *,
    softmax: Mapping[str, torch.Tensor] | None = None,
    words: Iterable[str] | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """
    Writes a weight file: safetensors if its name ends with `.safetensors`, and HDF5 otherwise, gzip'd.

    # Parameters

    weight_file
        The file to write; an existing one is replaced.
    state
        As `Bilm.state_dict()` gives it.
    options
        The shape of the biLM.
    softmax
        As `LmSoftmax.state_dict()` gives it: to be written into the same file. Other readers of the biLM ignore it.
    words
        Those that the softmax predicts, in their order: their digest goes into the file.
    dtype
        `torch.float32` or `torch.float16`.

    # Raises

    `ValueError`
        If `dtype` is another, a weight is not finite in it, or the softmax does not match the format or the biLM.
    """
    if dtype not in (torch.float32, torch.float16):
        raise ValueError(f"dtype must be torch.float32 or torch.float16, but is {dtype}")
    arrays = {name.key: _array(state, name, dtype) for name in weight_names(options)}
    arrays |= {key: state[parameter].numpy() for key, (parameter, _) in dictionary_names(options).items()}
    if softmax is not None:
        arrays |= {name.key: _array(softmax, name, dtype) for name in _fitting_names(softmax, options)}
    write_arrays(weight_file, arrays, {} if words is None else {_WORDS_NOTE: _digest(words)})


def _array(state: Mapping[str, torch.Tensor], name: WeightName, dtype: torch.dtype) -> np.ndarray:
    tensor = state[name.parameter].detach().cpu().to(dtype)
    if not torch.isfinite(tensor).all():
        raise ValueError(f"'{name.parameter}' must hold finite numbers to be written as {dtype}, but does not")
    return name.layout.write(tensor.numpy())


def _fitting_names(softmax: Mapping[str, torch.Tensor], options: BilmOptions) -> list[WeightName]:
    """The table for a softmax, checked against the biLM."""
    if set(softmax) != {"weight", "bias"}:
        raise ValueError(
            "a softmax must have 'weight' and 'bias' to be written, as `LmSoftmax` has, but this one has "
            f"{', '.join(map(repr, sorted(softmax)))}: omit it"
        )
    names = list(softmax_names(len(softmax["bias"]), options))
    for name in names:
        if (shape := tuple(softmax[name.parameter].shape)) != name.shape:
            raise ValueError(
                f"'{name.parameter}' of the softmax must have the shape {name.shape}, which fits its bias and "
                f"lstm.projection_dim, but has {shape}"
            )
    return names
