"""The hyper-parameters of a biLM: `options.json` of the public format."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from elmo_tasks.bilm.characters import MAX_CHARACTERS_PER_TOKEN, N_CHARACTER_IDS
from elmo_tasks.files.atomic_files import atomic_file

__all__ = ["BilmOptions", "DictionaryOptions", "StartState"]

StartState = Literal["zero", "settled"]

_ACTIVATIONS = ("relu", "tanh")
_START_STATES = get_args(StartState)
# bilm-tf trains with 261 characters and adds the id 0 (no word) only for use, where its README asks for 262. Files of
# both kinds exist, and mean the same model.
_N_CHARACTERS = (N_CHARACTER_IDS - 1, N_CHARACTER_IDS)
# Far above every published biLM (93.6 M), and 16 GB of float32; a file with more was made to fill the memory.
_MAX_PARAMETERS = 2**32
_MAX_LAYERS = 100
_MAX_FILTER_WIDTHS = 1000
# Two markers around `<bos>`, which models with dictionaries spell; and far above the 50 of every published one.
_MIN_CHARACTERS, _MAX_CHARACTERS = 7, 10_000


@dataclass(frozen=True, kw_only=True)
class DictionaryOptions:
    """
    The input of a biLM that has dictionaries of Unicode characters, of words, or of both, as those of
    ELMoForManyLangs, in place of the bytes of the public scheme.

    # Parameters

    n_characters
        Entries of the dictionary of characters; 0 if there is none.
    n_words
        Entries of the dictionary of words; 0 if there is none.
    word_dim
        Units of a word's embedding, which the projection reads before those of the character CNN; 0 if there is none.
    max_characters
        Characters of a word with its two markers; the others are cut.

    # Raises

    `ValueError`
        If a value is out of its range.
    """

    n_characters: int = 0
    n_words: int = 0
    word_dim: int = 0
    max_characters: int = 50

    def __post_init__(self) -> None:
        for key, value, lowest in (
            ("char_cnn.n_characters", self.n_characters, 0),
            ("dictionaries.n_words", self.n_words, 0),
            ("dictionaries.word_dim", self.word_dim, 0),
            ("char_cnn.max_characters_per_token", self.max_characters, _MIN_CHARACTERS),
        ):
            if not _is_count(value) or value < lowest:
                raise ValueError(f"{key} must be a whole number of at least {lowest}, but is {value!r}")
        if self.max_characters > _MAX_CHARACTERS:
            raise ValueError(f"char_cnn.max_characters_per_token must be at most {_MAX_CHARACTERS:,}, but is larger")
        if (self.n_words == 0) != (self.word_dim == 0) or self.n_characters + self.n_words == 0:
            raise ValueError(
                "a biLM with dictionaries must have characters, or words with an embedding, or both, but has "
                f"{self.n_characters} characters, and {self.n_words} words with {self.word_dim} units each"
            )


@dataclass(frozen=True, kw_only=True)
class BilmOptions:
    """
    The hyper-parameters of a biLM, without which its weights cannot be read (section 3.4 of the paper; bilm-tf's
    `options.json`).
    The defaults are the paper's model.

    # Parameters

    cell_dim
        Units of the memory cell of each LSTM.
    projection_dim
        Units of the input and of the output of each LSTM. A word vector has twice as many: both directions.
    n_layers
        LSTMs on top of each other, in each direction.
    cell_clip, projection_clip
        The memory cell and the projected output are kept between plus and minus this. `None`: no clipping.
    residual
        Whether the input of each layer but the first is added to its output.
    character_dim
        Units of a character's embedding.
    filters
        Width in characters and number of the convolution's filters.
    n_highway
        Highway layers between the filters and the projection.
    activation
        Of the convolution: `relu` or `tanh`.
    dictionaries
        Those of a biLM that has its own; without characters among them there is no CNN, and the four options above are
        0 or empty. `None`: characters are bytes, as in every biLM in the public format.
    start_state
        The state of the LSTMs before each sentence: `"zero"`; or `"settled"`, that after some empty sentences, which a
        biLM that was trained on running text knows better. Both depend on the weights alone; in training no gradient
        reaches the weights through it. In `options.json` it is `lstm.start_state`; a file without it means `"zero"`,
        and other programs ignore it.

    # Raises

    `ValueError`
        If a value is out of its range; the message names it as `options.json` does.
    """

    cell_dim: int = 4096
    projection_dim: int = 512
    n_layers: int = 2
    cell_clip: float | None = 3.0
    projection_clip: float | None = 3.0
    residual: bool = True
    character_dim: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    n_highway: int = 2
    activation: str = "relu"
    dictionaries: DictionaryOptions | None = None
    # Not in `repr`, of which digests of biLMs are made: those of earlier versions remain valid.
    start_state: StartState = field(default="zero", repr=False)

    def __post_init__(self) -> None:
        for key, value, lowest in (
            ("lstm.dim", self.cell_dim, 1),
            ("lstm.projection_dim", self.projection_dim, 1),
            ("lstm.n_layers", self.n_layers, 1),
            ("char_cnn.embedding.dim", self.character_dim, 1 if self.has_characters else 0),
        ):
            if not _is_count(value) or value < lowest:
                raise ValueError(f"{key} must be a whole number of at least {lowest}, but is {value!r}")
        if not _is_count(self.n_highway) or self.n_highway < 0:
            raise ValueError(f"char_cnn.n_highway must be a whole number of at least 0, but is {self.n_highway!r}")
        for key, value in (("lstm.n_layers", self.n_layers), ("char_cnn.n_highway", self.n_highway)):
            if value > _MAX_LAYERS:
                raise ValueError(f"{key} must be at most {_MAX_LAYERS}, but is larger")
        for key, clip in (("lstm.cell_clip", self.cell_clip), ("lstm.proj_clip", self.projection_clip)):
            if clip is not None and (isinstance(clip, bool) or not isinstance(clip, int | float) or not 0 < clip < inf):
                raise ValueError(f"{key} must be a positive number, or null for no clipping, but is {clip!r}")
        if self.activation not in _ACTIVATIONS:
            raise ValueError(f"char_cnn.activation must be one of {_ACTIVATIONS}, but is {self.activation!r}")
        if self.start_state not in _START_STATES:
            raise ValueError(f"lstm.start_state must be one of {_START_STATES}, but is {self.start_state!r}")
        if not isinstance(self.residual, bool):
            raise ValueError(f"lstm.use_skip_connections must be true or false, but is {self.residual!r}")
        # JSON's lists become tuples, which can be compared and hashed; the dataclass is frozen.
        object.__setattr__(self, "filters", self._checked_filters())
        if self.n_parameters > _MAX_PARAMETERS:
            raise ValueError(f"a biLM must have at most {_MAX_PARAMETERS:,} parameters, but these options ask for more")

    def _checked_filters(self) -> tuple[tuple[int, int], ...]:
        if self.has_characters:
            return _filters(self.filters, self.max_characters)
        if self.character_dim or self.filters or self.n_highway:
            raise ValueError(
                "a biLM whose dictionaries have no characters has no character CNN, but has "
                f"char_cnn.embedding.dim {self.character_dim}, char_cnn.filters {self.filters!r:.200} and "
                f"char_cnn.n_highway {self.n_highway}"
            )
        return ()

    @property
    def has_characters(self) -> bool:
        """Whether there is a character CNN."""
        return self.dictionaries is None or self.dictionaries.n_characters > 0

    @property
    def max_characters(self) -> int:
        """Characters of a word, with its two markers."""
        return MAX_CHARACTERS_PER_TOKEN if self.dictionaries is None else self.dictionaries.max_characters

    @property
    def n_filters(self) -> int:
        """All filters of the character CNN together: the width of the highway layers."""
        return sum(number for _, number in self.filters)

    @property
    def n_parameters(self) -> int:
        """Numbers in all weights of the biLM, without a softmax."""
        filters = sum(number * (width * self.character_dim + 1) for width, number in self.filters)
        highways = 2 * self.n_highway * self.n_filters * (self.n_filters + 1)
        lstm = 4 * self.cell_dim * (2 * self.projection_dim + 1) + self.cell_dim * self.projection_dim
        of_own = self.dictionaries
        n_characters, n_words, word_dim = (
            (N_CHARACTER_IDS, 0, 0) if of_own is None else (of_own.n_characters, of_own.n_words, of_own.word_dim)
        )
        embeddings = n_characters * self.character_dim + n_words * word_dim
        projection = (word_dim + self.n_filters + 1) * self.projection_dim
        return embeddings + filters + highways + projection + 2 * self.n_layers * lstm

    @property
    def output_dim(self) -> int:
        """Units of a word vector: forward and backward concatenated."""
        return 2 * self.projection_dim

    @classmethod
    def from_dict(cls, options: Mapping[str, Any], source: str = "options") -> "BilmOptions":
        """
        Reads the content of an `options.json`. Keys that matter only to bilm-tf's training (`dropout`, `n_epochs`, ...)
        are ignored.

        # Parameters

        options
            The parsed file.
        source
            The origin of the options, for messages.

        # Raises

        `ValueError`
            If a key is missing or a value is out of its range; the message names `source`, the key and the value.
        """
        try:
            if not isinstance(options, Mapping):
                raise ValueError(f"the options must be an object with 'lstm' and 'char_cnn', but are {options!r:.80}")
            if "start_state" in options:
                raise ValueError("start_state must be in 'lstm', where it has an effect, but is beside it")
            return cls(
                cell_dim=_get(options, "lstm", "dim"),
                projection_dim=_get(options, "lstm", "projection_dim"),
                n_layers=_get(options, "lstm", "n_layers"),
                cell_clip=_get(options, "lstm", "cell_clip"),
                projection_clip=_get(options, "lstm", "proj_clip"),
                residual=_get(options, "lstm", "use_skip_connections"),
                character_dim=_get(options, "char_cnn", "embedding", "dim"),
                filters=_get(options, "char_cnn", "filters"),
                n_highway=_get(options, "char_cnn", "n_highway"),
                activation=_get(options, "char_cnn", "activation"),
                dictionaries=_dictionaries(options),
                start_state=options["lstm"].get("start_state", "zero"),
            )
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from None

    @classmethod
    def from_file(cls, options_file: str | PathLike[str]) -> "BilmOptions":
        """
        Reads an `options.json`.

        # Raises

        `ValueError`
            If the file is not JSON or not the options of a biLM; `OSError` if it cannot be opened.
        """
        with open(options_file, encoding="utf-8") as file:
            try:
                options = json.load(file)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{options_file}: an options file must be JSON, but {error}") from None
        return cls.from_dict(options, source=str(options_file))

    def to_dict(self) -> dict[str, Any]:
        """The content of an `options.json`, which bilm-tf and AllenNLP read too unless there are dictionaries."""
        of_own = self.dictionaries
        return {
            "lstm": {
                "use_skip_connections": self.residual,
                "projection_dim": self.projection_dim,
                "cell_clip": self.cell_clip,
                "proj_clip": self.projection_clip,
                "dim": self.cell_dim,
                "n_layers": self.n_layers,
                **({} if self.start_state == "zero" else {"start_state": self.start_state}),
            },
            "char_cnn": {
                "activation": self.activation,
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.n_highway,
                "embedding": {"dim": self.character_dim},
                "n_characters": N_CHARACTER_IDS if of_own is None else of_own.n_characters,
                "max_characters_per_token": self.max_characters,
            },
            **({} if of_own is None else {"dictionaries": {"n_words": of_own.n_words, "word_dim": of_own.word_dim}}),
        }

    def save(self, options_file: str | PathLike[str]) -> None:
        """Writes an `options.json`, whole or not at all."""
        with atomic_file(Path(options_file)) as temporary:
            temporary.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _get(options: Mapping[str, Any], *path: str) -> Any:
    value: Any = options
    for depth, key in enumerate(path):
        if not isinstance(value, Mapping) or key not in value:
            raise ValueError(
                f"the options of a biLM must have the key '{'.'.join(path[: depth + 1])}', which is missing"
            )
        value = value[key]
    return value


def _dictionaries(options: Mapping[str, Any]) -> DictionaryOptions | None:
    if "dictionaries" not in options:
        _check_public_scheme(options)
        return None
    return DictionaryOptions(
        n_characters=_get(options, "char_cnn", "n_characters"),
        n_words=_get(options, "dictionaries", "n_words"),
        word_dim=_get(options, "dictionaries", "word_dim"),
        max_characters=_get(options, "char_cnn", "max_characters_per_token"),
    )


def _filters(value: Any, max_width: int) -> tuple[tuple[int, int], ...]:
    pairs = tuple(tuple(pair) if isinstance(pair, list | tuple) else () for pair in value) if _is_list(value) else ()
    if not 0 < len(pairs) <= _MAX_FILTER_WIDTHS or not all(
        len(pair) == 2 and all(map(_is_count, pair)) and 1 <= pair[0] <= max_width and pair[1] >= 1 for pair in pairs
    ):
        raise ValueError(
            f"char_cnn.filters must be pairs of a width (1 to {max_width}) and a number of filters (at least 1), "
            f"but is {value!r:.200}"
        )
    return pairs


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _check_public_scheme(options: Mapping[str, Any]) -> None:
    n_characters = _get(options, "char_cnn", "n_characters")
    if n_characters not in _N_CHARACTERS:
        raise ValueError(
            f"char_cnn.n_characters must be 261 or 262 (the bytes and six markers), but is {n_characters!r}"
        )
    width = _get(options, "char_cnn", "max_characters_per_token")
    if width != MAX_CHARACTERS_PER_TOKEN:
        raise ValueError(f"char_cnn.max_characters_per_token must be {MAX_CHARACTERS_PER_TOKEN}, but is {width!r}")
