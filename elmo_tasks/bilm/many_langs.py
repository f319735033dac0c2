"""
ELMoForManyLangs models (Che et al. 2018): an encoder with dictionaries, and the files of a model.

A word is encoded as its Unicode code points between a begin and an end marker, padded with zeros.
No id occurs in the public scheme of `character_ids.py`. The encoder looks up characters and words
in its own dictionaries.
"""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from elmo_tasks.bilm.character_encoder import CharacterEncoder
from elmo_tasks.bilm.character_ids import WordRows
from elmo_tasks.bilm.options import BilmOptions, DictionaryOptions
from elmo_tasks.bilm.packed_linear import type_of_results
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.lines import numbered_lines

__all__ = [
    "BOUNDARIES",
    "DictionaryEncoder",
    "model_files",
    "options_of_model",
    "weight_sources",
    "weights_of_model",
    "word_to_code_points",
]

BOUNDARIES = ("<bos>", "<eos>")
_UNKNOWN, _PADDING, _BEGIN_OF_WORD, _END_OF_WORD = "<oov>", "<pad>", "<bow>", "<eow>"
# Above all ids of the public scheme.
_BEGIN_ID, _END_ID, _FIRST_ID = 300, 301, 302


@lru_cache(maxsize=100_000)
def word_to_code_points(word: str, width: int) -> np.ndarray:
    """The ids of a word, cut after `width - 2` code points: shape `(width,)`, int64, read-only."""
    row = np.zeros(width, dtype=np.int64)
    ids = [_FIRST_ID + ord(character) for character in word[: width - 2]]
    row[: len(ids) + 2] = [_BEGIN_ID, *ids, _END_ID]
    # All callers share the cached array.
    row.setflags(write=False)
    return row


def _words_of(rows: np.ndarray) -> list[str]:
    """The words that rows of ids encode, without the characters that were cut."""
    words = []
    for row in rows.tolist():
        if row[0] != _BEGIN_ID or _END_ID not in row:
            raise ValueError(
                "expected ids of Unicode characters: "
                "set `unicode_characters` of the token indexer 'elmo'"
            )
        words.append("".join(chr(number - _FIRST_ID) for number in row[1 : row.index(_END_ID)]))
    return words


class Dictionary(nn.Module):
    """
    Maps keys to the rows of an embedding. The keys are part of the state, as UTF-8 bytes between
    line feeds.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, int] = {}

    def __getitem__(self, key: str) -> int:
        return self._rows[key]

    def rows(self, keys: Sequence[str]) -> list[int]:
        """The row of each key, or of `<oov>` if the key is unknown."""
        unknown = self._rows[_UNKNOWN]
        return [self._rows.get(key, unknown) for key in keys]

    @staticmethod
    def state_of(keys: Sequence[str]) -> torch.Tensor:
        """The state of a dictionary with these keys, in the order of their rows."""
        # Keys may contain lone surrogates.
        return torch.from_numpy(
            np.frombuffer("\n".join(keys).encode("utf-8", "surrogatepass"), np.uint8).copy()
        )

    def get_extra_state(self) -> torch.Tensor:
        return self.state_of(list(self._rows))

    def set_extra_state(self, state: Any) -> None:
        text = state.cpu().numpy().tobytes().decode("utf-8", "surrogatepass")
        keys = text.split("\n") if text else []
        self._rows = {key: row for row, key in enumerate(keys)}


class DictionaryEncoder(CharacterEncoder):
    """
    A character CNN over the Unicode characters of a word. The projection reads an embedding of the
    word, then the CNN's output. Either part may be absent. Unknown characters and words are
    `<oov>`.

    A word is cut after `max_characters - 2` characters, also for its embedding. The padding in a
    word's row has an embedding, which is not zero.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__(options)
        sizes = options.dictionaries
        assert sizes is not None
        row_of = partial(word_to_code_points, width=sizes.max_characters)
        self.word_rows = WordRows(sizes.max_characters, BOUNDARIES, row_of)
        self.word_embedding = nn.Embedding(sizes.n_words, sizes.word_dim) if sizes.n_words else None
        self.characters = Dictionary() if sizes.n_characters else None
        self.words = Dictionary() if sizes.n_words else None

    def encode(
        self, words: torch.Tensor, numbers: torch.Tensor, dtype: torch.dtype
    ) -> torch.Tensor:
        """See `CharacterEncoder.encode`."""
        spelled = _words_of(words.cpu().numpy())
        device = self.projection.weight.device
        others = None
        if self.words is not None and self.word_embedding is not None:
            # Shape: (n_words, word_dim)
            others = self.word_embedding(torch.tensor(self.words.rows(spelled), device=device))
            others = others.to(type_of_results(dtype))
        if self.characters is None:
            assert others is not None
            return self._linear_layers(dtype)[self.projection](others)[numbers.to(device)]
        # Shape: (n_words, width)
        ids = torch.from_numpy(self.character_ids(spelled))
        return self._encode_by_length(
            ids, ids != self.characters[_PADDING], numbers.cpu(), dtype, others
        )

    def character_ids(self, words: Sequence[str]) -> np.ndarray:
        """
        The dictionary rows of the characters of words, which are already cut: shape
        `(n_words, width)`, int64.
        """
        assert self.characters is not None
        # Swapped, as in the training of the published models.
        begin, end = self.characters[_END_OF_WORD], self.characters[_BEGIN_OF_WORD]
        ids = np.full((len(words), self.word_rows.width), self.characters[_PADDING], dtype=np.int64)
        for row, word in zip(ids, words, strict=True):
            # A boundary is spelled as a single character.
            inner = self.characters.rows([word] if word in BOUNDARIES else word)
            row[: len(inner) + 2] = [begin, *inner, end]
        return ids


_CONFIG, _ENCODER, _TOKEN_EMBEDDER = "config.json", "encoder.pkl", "token_embedder.pkl"


def model_files(folder: Path) -> tuple[Path, Path] | None:
    """
    The options file and the weight file in the folder of such a model; `None` for other folders.
    """
    has_encoder = (folder / _ENCODER).exists() or (folder / _TOKEN_EMBEDDER).exists()
    if not has_encoder or (folder / "options.json").exists():
        return None
    return folder / _CONFIG, folder / _ENCODER


def options_of_model(path: Path) -> BilmOptions:
    """The options in the `config.json` of a model."""
    try:
        # The path is usually from the machine that trained the model, so only the file name is
        # used.
        name = read_json(path)["config_path"].replace("\\", "/").rpartition("/")[2]
        # The published names: cnn_50_100_512_4096_sample.json and cnn_0_100_512_4096_sample.json.
        path = path.with_name(name)
        if name.endswith("_100_512_4096_sample.json") and not path.is_file():
            # The archives of the published models lack this file.
            return BilmOptions(character_dim=50, dictionaries=_sizes(path.parent, word_dim=100))
        return _options(path.parent, read_json(path))
    except (KeyError, FileNotFoundError) as error:
        what = f"key {error}" if isinstance(error, KeyError) else "file that config_path names,"
        raise ValueError(f"expected the {what} of a model of ELMoForManyLangs: {path}") from None
    except (AttributeError, TypeError) as error:
        raise ValueError(
            f"{path}: not the options of a model of ELMoForManyLangs: {error}"
        ) from None


def weights_of_model(folder: Path, options: BilmOptions) -> dict[str, torch.Tensor]:
    """The state for `Bilm.load_state_dict`, from the files in the folder of a model."""
    dictionaries = options.dictionaries
    assert dictionaries is not None
    files: dict[str, Mapping[str, torch.Tensor]] = {}
    state = {}
    try:
        for file in (_TOKEN_EMBEDDER, _ENCODER):
            # Runs no pickled code, and loads tensors that were saved on any device.
            files[file] = torch.load(folder / file, map_location="cpu", weights_only=True)
        for source in weight_sources(options):
            file = source.file
            state[source.parameter] = source.parameter_from(files[file]).contiguous()
    except (KeyError, pickle.UnpicklingError, EOFError, RuntimeError) as error:
        message = str(error).partition("\n")[0]
        raise ValueError(
            f"expected the tensors of a model of ELMoForManyLangs ({message}): {folder / file}"
        ) from None
    if dictionaries.n_characters:
        n_rows = len(state["character_encoder.embedding.weight"])
        keys = _keys_of_embedding(folder / "char.dic", dictionaries.n_characters, n_rows)
        state["character_encoder.characters._extra_state"] = Dictionary.state_of(keys)
    if dictionaries.n_words:
        n_rows = len(state["character_encoder.word_embedding.weight"])
        keys = _keys_of_embedding(folder / "word.dic", dictionaries.n_words, n_rows)
        state["character_encoder.words._extra_state"] = Dictionary.state_of(keys)
    return state


def _keys_of_embedding(path: Path, n_keys: int, n_rows: int) -> list[str]:
    if n_keys != n_rows:
        raise ValueError(f"expected {n_rows} keys, as the embedding has, got {n_keys}: {path}")
    return _keys(path)


def _options(folder: Path, network: Mapping[str, Any]) -> BilmOptions:
    embedder = network["token_embedder"]
    encoder = network["encoder"]
    max_characters = embedder["max_characters_per_token"]
    has_characters = embedder["char_dim"] > 0
    return BilmOptions(
        cell_dim=encoder["dim"],
        projection_dim=encoder["projection_dim"],
        n_layers=encoder["n_layers"],
        cell_clip=encoder["cell_clip"] or None,
        projection_clip=encoder["proj_clip"] or None,
        character_dim=embedder["char_dim"],
        filters=embedder["filters"] if has_characters else (),
        n_highway=embedder["n_highway"] if has_characters else 0,
        activation=embedder["activation"],
        dictionaries=_sizes(folder, embedder["word_dim"], has_characters, max_characters),
    )


def _sizes(
    folder: Path, word_dim: int, has_characters: bool = True, max_characters: int = 50
) -> DictionaryOptions:
    return DictionaryOptions(
        n_characters=len(_keys(folder / "char.dic")) if has_characters else 0,
        n_words=len(_keys(folder / "word.dic")) if word_dim else 0,
        word_dim=word_dim,
        max_characters=max_characters,
    )


def _keys(path: Path) -> list[str]:
    """
    The keys of a dictionary in the order of their numbers: each line has a key, a tab and its
    number.
    """
    numbers: dict[str, int] = {}
    for number, line in numbered_lines(path):
        # A line without a key is for the only white-space character in the words of these models.
        key, tab, value = line.strip().rpartition("\t")
        if not value.isdecimal():
            raise ValueError(
                f"expected a key, a tab and a number, got {line[:60]!r}: {path}, line {number}"
            )
        # If two lines have the same key, the original uses the later one.
        numbers[key if tab else "\u3000"] = int(value)
    return sorted(numbers, key=numbers.__getitem__)


@dataclass(frozen=True)
class WeightSource:
    """
    Where a parameter of `Bilm` comes from: a file, the names of tensors in it, and what converts
    them.
    """

    parameter: str
    file: str
    keys: tuple[str, ...]
    convert: Callable[..., torch.Tensor]

    def parameter_from(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The parameter, from the tensors of its file."""
        return self.convert(*(tensors[key].float() for key in self.keys))


def weight_sources(options: BilmOptions) -> Iterator[WeightSource]:
    """The source of each parameter."""
    dictionaries = options.dictionaries
    if dictionaries is not None and dictionaries.n_words:
        yield _encoder_source("word_embedding.weight", "word_emb_layer.embedding.weight")
    if dictionaries is None or dictionaries.n_characters:
        yield _encoder_source("embedding.weight", "char_emb_layer.embedding.weight")
    for i in range(len(options.filters)):
        for name in (f"convolutions.{i}.weight", f"convolutions.{i}.bias"):
            yield _encoder_source(name, name)
    for i in range(options.n_highway):
        for kind in ("weight", "bias"):
            key = f"highways._layers.{i}.{kind}"
            yield _encoder_source(f"highways.{i}.transform.{kind}", key, _transform)
            yield _encoder_source(f"highways.{i}.carry.{kind}", key, _carry)
    for name in ("projection.weight", "projection.bias"):
        yield _encoder_source(name, name)
    for direction in ("forward", "backward"):
        for i in range(options.n_layers):
            theirs = f"{direction}_layer_{i}"
            ours = f"{direction}_layers.{i}"
            kernel_keys = (f"{theirs}.input_linearity.weight", f"{theirs}.state_linearity.weight")
            bias_keys = (f"{theirs}.state_linearity.bias",)
            projection_keys = (f"{theirs}.state_projection.weight",)
            yield WeightSource(f"{ours}.kernel", _ENCODER, kernel_keys, _kernel)
            yield WeightSource(f"{ours}.bias", _ENCODER, bias_keys, _bias)
            yield WeightSource(f"{ours}.projection", _ENCODER, projection_keys, torch.t)


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _encoder_source(
    parameter: str, key: str, convert: Callable[..., torch.Tensor] = _same
) -> WeightSource:
    return WeightSource(f"character_encoder.{parameter}", _TOKEN_EMBEDDER, (key,), convert)


def _transform(both: torch.Tensor) -> torch.Tensor:
    """Their matrix stacks the transform and the gate."""
    return both.chunk(2)[0]


def _carry(both: torch.Tensor) -> torch.Tensor:
    """Their gate is for the carried input; ours is for the transform."""
    return -both.chunk(2)[1]


def _in_our_order(gates: torch.Tensor) -> torch.Tensor:
    """
    Reorders gates in the first dimension: from input, forget, memory, output to input, memory,
    forget, output.
    """
    i, f, g, o = gates.chunk(4)
    return torch.cat([i, g, f, o])


def _kernel(input_weight: torch.Tensor, state_weight: torch.Tensor) -> torch.Tensor:
    return torch.cat([_in_our_order(input_weight).t(), _in_our_order(state_weight).t()])


def _bias(bias: torch.Tensor) -> torch.Tensor:
    ours = _in_our_order(bias).clone()
    # Their bias includes the forget gate's 1, which `ProjectedLstm` adds.
    ours.chunk(4)[2].sub_(1.0)
    return ours
