"""The folder of a model of ELMoForManyLangs: which files it has, and the options that they mean."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_tasks.bilm.dictionary_encoder import CHARACTER_KEYS, WORD_KEYS
from elmo_tasks.bilm.many_langs.dictionary_file import read_dictionary
from elmo_tasks.bilm.options import BilmOptions, DictionaryOptions

__all__ = ["CONFIG", "ENCODER", "TOKEN_EMBEDDER", "dictionaries_of", "is_model_folder", "read_options", "weight_files"]

CONFIG, ENCODER, TOKEN_EMBEDDER = "config.json", "encoder.pkl", "token_embedder.pkl"
_CHARACTERS, _WORDS = "char.dic", "word.dic"
_MAX_JSON_BYTES = 2**20

# The network of all published models, whose archives lack the file that `config_path` names.
_PUBLISHED_NAMES = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
_PUBLISHED: Mapping[str, Any] = {
    "encoder": {"name": "elmo", "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096, "n_layers": 2},
    "token_embedder": {
        "name": "cnn",
        "activation": "relu",
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "n_highway": 2,
        "word_dim": 100,
        "char_dim": 50,
        "max_characters_per_token": 50,
    },
}


def is_model_folder(folder: Path) -> bool:
    """Whether a folder has files of such a model, and none of a biLM in the public format."""
    return not (folder / "options.json").exists() and (
        (folder / ENCODER).exists() or (folder / TOKEN_EMBEDDER).exists() or _names_config(folder / CONFIG)
    )


def weight_files(folder: Path) -> list[Path]:
    """Those that say the vectors of words, of those that a model has; other models lack the one or the other."""
    names = (ENCODER, TOKEN_EMBEDDER, _CHARACTERS, _WORDS)
    return [path for name in names if (path := folder / name).is_file()]


def _names_config(config_file: Path) -> bool:
    try:
        return "config_path" in _json(config_file)
    except (OSError, ValueError):
        return False


def read_options(config_file: str | PathLike[str]) -> BilmOptions:
    """
    Reads the options of a model, and how many entries its dictionaries have.

    # Parameters

    config_file
        The `config.json` of the folder.

    # Raises

    `ValueError`
        If a file is not what it should be, or the model is of another kind than the published ones: with an LSTM over
        characters, or without clipping and projection.
    `FileNotFoundError`
        If a file is missing, with its name.
    """
    config_file = Path(config_file)
    folder = config_file.parent
    network, source = _network(folder, _json(config_file))
    try:
        embedder, encoder = _part(network, "token_embedder", "cnn"), _part(network, "encoder", "elmo")
        has_characters, has_words = (_dim(embedder, key) > 0 for key in ("char_dim", "word_dim"))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    n_characters = len(_characters(folder)) if has_characters else 0
    n_words = len(_words(folder)) if has_words else 0
    try:
        return BilmOptions(
            cell_dim=_get(encoder, "dim"),
            projection_dim=_get(encoder, "projection_dim"),
            n_layers=_get(encoder, "n_layers"),
            cell_clip=_get(encoder, "cell_clip") or None,
            projection_clip=_get(encoder, "proj_clip") or None,
            character_dim=_get(embedder, "char_dim"),
            filters=_get(embedder, "filters") if has_characters else (),
            n_highway=_get(embedder, "n_highway") if has_characters else 0,
            activation=_get(embedder, "activation"),
            dictionaries=DictionaryOptions(
                n_characters=n_characters,
                n_words=n_words,
                word_dim=_get(embedder, "word_dim"),
                max_characters=_get(embedder, "max_characters_per_token"),
            ),
        )
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None


def dictionaries_of(folder: Path, options: BilmOptions) -> tuple[list[str], list[str]]:
    """The characters and the words of a model in the order of their rows; of a dictionary that it lacks, none."""
    sizes = options.dictionaries
    assert sizes is not None
    return _characters(folder) if sizes.n_characters else [], _words(folder) if sizes.n_words else []


def _characters(folder: Path) -> list[str]:
    return read_dictionary(_file(folder, _CHARACTERS), CHARACTER_KEYS)


def _words(folder: Path) -> list[str]:
    return read_dictionary(_file(folder, _WORDS), WORD_KEYS)


def _network(folder: Path, config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Path]:
    """The description of the network, and the file that it is from."""
    path = _get(config, "config_path")
    if not isinstance(path, str) or not path:
        raise ValueError(f"{folder / CONFIG}: 'config_path' must be a path, but is {path!r:.80}")
    # The path is mostly one on the machine of those who trained the model; nothing outside of the folder is read.
    parts = path.replace("\\", "/").split("/")
    name = parts[-1]
    for file in (folder.joinpath(*parts) if parts[0] and ".." not in parts else folder / name, folder / name):
        if file.is_file():
            return _json(file), file
    if name in _PUBLISHED_NAMES:
        return _PUBLISHED, folder / CONFIG
    raise FileNotFoundError(
        f"the folder of a model of ELMoForManyLangs must have the file that {CONFIG} names in 'config_path', but "
        f"'{folder}' has no {name}: put the description of the network there under this name"
    )


def _file(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        raise FileNotFoundError(
            f"the folder of this model of ELMoForManyLangs must have {name}, but '{folder}' has none: unpack the "
            "whole archive into one folder"
        )
    return folder / name


def _json(file: Path) -> Mapping[str, Any]:
    if file.stat().st_size > _MAX_JSON_BYTES:
        raise ValueError(f"{file} must have at most {_MAX_JSON_BYTES:,} bytes, but has more")
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} must be JSON, but {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{file} must hold a JSON object, but holds a {type(content).__name__}")
    return content


def _part(network: Mapping[str, Any], key: str, kind: str) -> Mapping[str, Any]:
    part = _get(network, key)
    if not isinstance(part, Mapping):
        raise ValueError(f"'{key}' must be an object, but is {part!r:.80}")
    if _get(part, "name") != kind:
        raise ValueError(
            f"the '{key}' of a model must be '{kind}', as that of every published one, but is {part['name']!r:.80}"
        )
    return part


def _get(part: Mapping[str, Any], key: str) -> Any:
    if key not in part:
        raise ValueError(f"the key '{key}' must be there, but is missing")
    return part[key]


def _dim(part: Mapping[str, Any], key: str) -> int:
    value = _get(part, key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"'{key}' must be a whole number of at least 0, but is {value!r:.80}")
    return value
