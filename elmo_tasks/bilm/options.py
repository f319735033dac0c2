"""The hyper-parameters of a biLM: `options.json` of the public format."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_tasks.bilm.character_ids import MAX_CHARACTERS_PER_TOKEN, N_CHARACTER_IDS
from elmo_tasks.files.json_files import read_json, write_json

__all__ = ["BilmOptions", "DictionaryOptions"]

# A file of options may be untrusted: one number would allocate any memory. The largest published
# biLM has 2 layers of 4,096 cells, and 94 million weights.
_MOST_LAYERS = 64
_MOST_UNITS = 2**16
_MOST_ENTRIES = 2**27
_MOST_WEIGHTS = 2**31


@dataclass(frozen=True, kw_only=True)
class DictionaryOptions:
    """
    The input of a biLM with dictionaries of Unicode characters, words or both, as in
    ELMoForManyLangs, instead of the public scheme's bytes.

    # Parameters

    n_characters, n_words
        The number of entries in the dictionary of characters and of words; 0 without a dictionary.
    word_dim
        Units of a word's embedding, which the projection reads before the output of the character
        CNN.
    max_characters
        Characters per word, including its two markers; longer words are cut.
    """

    n_characters: int = 0
    n_words: int = 0
    word_dim: int = 0
    max_characters: int = 50


@dataclass(frozen=True, kw_only=True)
class BilmOptions:
    """
    The hyper-parameters of a biLM (section 3.4 of the paper; bilm-tf's `options.json`). The
    defaults are the paper's model.

    # Parameters

    cell_dim
        Units of the memory cell of each LSTM.
    projection_dim
        Units of the input and the output of each LSTM. A word vector has twice as many, for both
        directions.
    n_layers
        Stacked LSTMs in each direction.
    cell_clip, projection_clip
        The largest magnitude of the memory cell and of the projected output. `None`: no clipping.
    residual
        Whether the input of each layer but the first is added to its output.
    character_dim
        Units of a character's embedding.
    filters
        Pairs of a width in characters and the number of filters with this width.
    n_highway
        Highway layers between the filters and the projection.
    activation
        The activation of the convolution: `relu` or `tanh`.
    dictionaries
        For a biLM with its own dictionaries. Without a dictionary of characters, there is no CNN,
        and its sizes above are 0 or empty. `None`: characters are bytes, as in every biLM in the
        public format.
    """

    # Digests of biLMs include `repr`, so renaming a field makes existing indexes unusable.
    cell_dim: int = 4096
    projection_dim: int = 512
    n_layers: int = 2
    cell_clip: float | None = 3.0
    projection_clip: float | None = 3.0
    residual: bool = True
    character_dim: int = 16
    filters: tuple[tuple[int, int], ...] = (
        (1, 32),
        (2, 32),
        (3, 64),
        (4, 128),
        (5, 256),
        (6, 512),
        (7, 1024),
    )
    n_highway: int = 2
    activation: str = "relu"
    dictionaries: DictionaryOptions | None = None

    def __post_init__(self) -> None:
        if self.activation not in ("relu", "tanh"):
            raise ValueError(
                f"expected char_cnn.activation 'relu' or 'tanh', got {self.activation!r}"
            )
        # JSON's lists become tuples, so options can be compared and hashed. The dataclass is
        # frozen.
        object.__setattr__(
            self, "filters", tuple((width, number) for width, number in self.filters)
        )
        self._check_sizes()

    def _check_sizes(self) -> None:
        sizes = self.dictionaries or DictionaryOptions()
        _check_size("dim", self.cell_dim, _MOST_UNITS)
        _check_size("projection_dim", self.projection_dim, _MOST_UNITS)
        _check_size("word_dim", sizes.word_dim, _MOST_UNITS)
        _check_size("embedding.dim", self.character_dim, _MOST_UNITS)
        for width, number in self.filters:
            _check_size("filters", width, _MOST_UNITS)
            _check_size("filters", number, _MOST_UNITS)
        _check_size("max_characters_per_token", sizes.max_characters, _MOST_UNITS)
        _check_size("n_layers", self.n_layers, _MOST_LAYERS)
        _check_size("n_highway", self.n_highway, _MOST_LAYERS)
        _check_size("filters", len(self.filters), _MOST_LAYERS)
        _check_size("n_characters", sizes.n_characters, _MOST_ENTRIES)
        _check_size("n_words", sizes.n_words, _MOST_ENTRIES)
        for name, clip in (("cell_clip", self.cell_clip), ("proj_clip", self.projection_clip)):
            if not isinstance(clip, int | float | None):
                raise ValueError(f"expected a number as {name}, got {clip!r:.60}")
        n_lstm = 2 * self.n_layers * self.cell_dim * 9 * self.projection_dim
        n_encoder = self.n_filters * (2 * self.n_highway * self.n_filters + self.projection_dim)
        n_embedded = sizes.n_words * sizes.word_dim + sizes.n_characters * self.character_dim
        n_weights = n_lstm + n_encoder + n_embedded
        if n_weights > _MOST_WEIGHTS:
            raise ValueError(f"expected at most {_MOST_WEIGHTS:,} weights, got {n_weights:,}")

    @property
    def n_filters(self) -> int:
        """
        The total number of filters in the character CNN, which is the width of the highway layers.
        """
        return sum(number for _, number in self.filters)

    @property
    def output_dim(self) -> int:
        """Units of a word vector: forward and backward concatenated."""
        return 2 * self.projection_dim

    @classmethod
    def from_dict(cls, options: Mapping[str, Any], source: str = "options") -> "BilmOptions":
        """
        Reads the content of an `options.json`. Keys that matter only to bilm-tf's training
        (`dropout`, `n_epochs`, ...) are ignored; missing keys have bilm-tf's defaults.
        """
        try:
            lstm = options["lstm"]
            cnn = options["char_cnn"]
            dictionaries = options.get("dictionaries")
            sizes = cnn["n_characters"], cnn["max_characters_per_token"]
            # bilm-tf trains with 261 characters and adds the id 0 (no word) only for inference,
            # where its README requires 262. Both kinds of files exist and describe the same model.
            if dictionaries is None and sizes not in ((261, 50), (262, 50)):
                raise ValueError(
                    f"expected n_characters 261 or 262 and max_characters_per_token 50, got {sizes}"
                )
            if dictionaries is not None:
                dictionaries = DictionaryOptions(
                    n_characters=sizes[0], max_characters=sizes[1], **dictionaries
                )
            return cls(
                cell_dim=lstm["dim"],
                projection_dim=lstm["projection_dim"],
                n_layers=lstm.get("n_layers", 1),
                cell_clip=lstm.get("cell_clip"),
                projection_clip=lstm.get("proj_clip"),
                residual=lstm.get("use_skip_connections", False),
                character_dim=cnn["embedding"]["dim"],
                filters=cnn["filters"],
                n_highway=cnn.get("n_highway") or 0,
                activation=cnn["activation"],
                dictionaries=dictionaries,
            )
        except KeyError as error:
            raise ValueError(f"{source}: the options of a biLM lack the key {error}") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"{source}: not the options of a biLM: {error}") from None

    @classmethod
    def from_file(cls, options_file: str | PathLike[str]) -> "BilmOptions":
        """
        Reads an `options.json`. Raises `ValueError` if it is not JSON or not the options of a biLM.
        """
        return cls.from_dict(read_json(Path(options_file)), source=str(options_file))

    def to_dict(self) -> dict[str, Any]:
        """
        The content of an `options.json`, which bilm-tf and AllenNLP can also read if it has no
        dictionaries.
        """
        content: dict[str, Any] = {
            "lstm": {
                "use_skip_connections": self.residual,
                "projection_dim": self.projection_dim,
                "cell_clip": self.cell_clip,
                "proj_clip": self.projection_clip,
                "dim": self.cell_dim,
                "n_layers": self.n_layers,
            },
            "char_cnn": {
                "activation": self.activation,
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.n_highway,
                "embedding": {"dim": self.character_dim},
                "n_characters": N_CHARACTER_IDS,
                "max_characters_per_token": MAX_CHARACTERS_PER_TOKEN,
            },
        }
        if (sizes := self.dictionaries) is not None:
            content["char_cnn"] |= {
                "n_characters": sizes.n_characters,
                "max_characters_per_token": sizes.max_characters,
            }
            content["dictionaries"] = {"n_words": sizes.n_words, "word_dim": sizes.word_dim}
        return content

    def save(self, options_file: str | PathLike[str]) -> None:
        """Writes an `options.json` atomically."""
        write_json(Path(options_file), self.to_dict())


def _check_size(name: str, size: object, most: int) -> None:
    if not isinstance(size, int) or not 0 <= size <= most:
        raise ValueError(f"expected a number from 0 to {most:,} as {name}, got {size!r:.60}")
