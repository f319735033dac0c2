"""
The configs: how Jsonnet evaluates them, their external variables for the data and the biLM, and
what `allennlp train` checks before it reads any data.

A config imports its variables from `elmo_tasks_variables.libsonnet`. That file has their defaults,
for programs that evaluate Jsonnet themselves; `evaluate_file` answers the import with the values of
the environment. They include the options of the biLM, which so become part of the evaluated config
and of the archive.
"""

import glob
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import _jsonnet
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from allennlp_today.config_error import FileContentError
from elmo_tasks.bilm.formats import read_any_options
from elmo_tasks.data.dataset_readers.task_reader import parts_of_file
from elmo_tasks.files.shipped import DEFAULT_BILM, FIXTURES, TRAINING_CONFIGS
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = [
    "check_data",
    "config_variables",
    "evaluate_file",
    "log_less",
    "missing_files",
    "strings_of",
]

logger = logging.getLogger(__name__)

_DATA, _GLOVE, _BILM, _LAYER = (
    "ELMO_TASKS_DATA",
    "ELMO_TASKS_GLOVE",
    "ELMO_TASKS_BILM",
    "ELMO_TASKS_LAYER",
)
_SHIPPED_GLOVE = "glove.open.100d.txt.gz"
# Their names in configs.
_KEYS = {"data": _DATA, "glove": _GLOVE, "layer": _LAYER}
_VARIABLES = "elmo_tasks_variables.libsonnet"
# 40,000 words, in a checkout. A wheel has only the vectors of the sample data.
_OPEN_GLOVE = FIXTURES.parent / "data" / "open" / "glove" / _SHIPPED_GLOVE


def config_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """
    The variables with their values from the environment, or their defaults. An empty value counts
    as not set. `ELMO_TASKS_GLOVE` is the name of a file in `glove/` of the data folder, or a path.
    By default, it is the only file there, or else the included vectors.
    """
    data = os.path.expanduser(environ.get(_DATA) or str(FIXTURES))
    files = _glove_files(data)
    if not files:
        glove = str(_OPEN_GLOVE if _OPEN_GLOVE.exists() else FIXTURES / "glove" / _SHIPPED_GLOVE)
    elif len(files) == 1:
        glove = files[0]
    else:
        # If it is not one of them, `check_data` lists them.
        glove = _SHIPPED_GLOVE
    return {
        _DATA: data,
        _GLOVE: os.path.expanduser(environ.get(_GLOVE) or glove),
        _BILM: os.path.expanduser(environ.get(_BILM) or DEFAULT_BILM),
        _LAYER: environ.get(_LAYER) or "1",
    }


def _glove_files(data: str) -> list[str]:
    return sorted(path.name for path in Path(data, "glove").glob("[!_]*d.txt*"))


def evaluate_file(filename: str, ext_vars: dict[str, str]) -> str:
    """
    Evaluates a Jsonnet file to JSON, like `_jsonnet.evaluate_file`, with our variables. `ext_vars`
    take precedence; AllenNLP passes the environment in them too.
    """
    variables = config_variables({**os.environ, **ext_vars})
    try:
        evaluated: str = _jsonnet.evaluate_file(
            filename,
            ext_vars={**ext_vars, **variables},
            import_callback=partial(_imported, variables),
            native_callbacks={"elmo_transformer": (("model_name",), _transformer)},
        )
    except RuntimeError as error:
        raise FileContentError(f"{filename}: {error}") from None
    return evaluated


def _transformer(model_name: str) -> dict[str, Any]:
    """The type of a transformer and the width of its layers: `std.native('elmo_transformer')`."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model_name)
    return {"model_type": config.model_type, "width": config.hidden_size}


def _imported(variables: dict[str, str], folder: str, name: str) -> tuple[str, bytes]:
    """The path and content of an imported file."""
    path = Path(folder, name)
    if path.name == _VARIABLES:
        return str(path), _variables_file(variables).encode()
    if name == _BILM:
        return name, json.dumps(_bilm_files(variables[_BILM])).encode()
    if not path.exists() and (TRAINING_CONFIGS / name).is_file():
        # A config in any folder may import `lib/ner.libsonnet`.
        path = TRAINING_CONFIGS / name
    return str(path), path.read_bytes()


def _variables_file(variables: dict[str, str]) -> str:
    # The biLM is imported, because Jsonnet then downloads or unpacks it only if a config uses it.
    values = {key: variables[name] for key, name in _KEYS.items()}
    return f"{json.dumps(values)} + {{ bilm: import '{_BILM}' }}"


def _bilm_files(bilm: str) -> dict[str, Any]:
    options_file, weight_file = pretrained_files(bilm)
    word_list = options_file.with_name("vocab.txt")
    return {
        "options": read_any_options(options_file).to_dict(),
        "weights": str(weight_file),
        "word_list": str(word_list) if word_list.is_file() else None,
    }


def strings_of(config: Any) -> Iterator[str]:
    """All values in a config that are strings."""
    if isinstance(config, str):
        yield config
    elif isinstance(config, dict):
        yield from strings_of(list(config.values()))
    elif isinstance(config, list):
        for value in config:
            yield from strings_of(value)


def check_data(params: Params) -> None:
    """
    Raises a `ConfigurationError` if an evaluated config names a file in the data folder that does
    not exist, or if a distributed training would fail after its last epoch. Missing test data is
    dropped with a warning, unless `evaluate_on_test` needs it. If `ELMO_TASKS_DATA` is not set, it
    warns that the small sample data is used.
    """
    if params.get("distributed") and params.get("evaluate_on_test", False):
        # Only the first worker evaluates, but the metrics are summed over all workers.
        raise ConfigurationError(
            "a distributed training cannot evaluate_on_test: run `allennlp evaluate` afterwards"
        )
    for part in ("validation", "test"):
        # AllenNLP would read data from `None` in some places, and not in others.
        if params.get(f"{part}_data_path") is None:
            params.pop(f"{part}_data_path", None)
    root = config_variables()["ELMO_TASKS_DATA"].rstrip("/")
    _drop_test_data(params, root)
    config = params.as_dict(quiet=True)
    missing = missing_files(config, root)
    if missing:
        raise ConfigurationError(f"{missing[0]} does not exist: {_hint(missing[0], root)}")
    _warn_of_sample_data(config)


def _drop_test_data(params: Params, root: str) -> None:
    """Drops test data that a training would not evaluate and cannot use, with a warning."""
    test = str(params.get("test_data_path", ""))
    if not test.startswith(f"{root}/") or params.get("evaluate_on_test", False):
        return
    if not str(params.get("train_data_path", "")).startswith(f"{root}/"):
        # The words and labels of other test data would become part of the model.
        reason = "belongs to different training data"
    elif not _exists(test):
        reason = "does not exist"
    else:
        return
    params.pop("test_data_path")
    logger.warning("%s %s: this training has no test data", test, reason)


def _hint(path: str, root: str) -> str:
    """What to do about a missing file in the data folder."""
    if not path.startswith(f"{root}/glove/"):
        return "copy it there, or set ELMO_TASKS_DATA to a different folder"
    names = _glove_files(root)
    if names:
        return f"set ELMO_TASKS_GLOVE to one of {', '.join(names)}, or to a path"
    return (
        "set ELMO_TASKS_GLOVE to the path of a file of vectors; "
        "`allennlp elmo-data glove` downloads GloVe"
    )


def _warn_of_sample_data(config: dict[str, Any]) -> None:
    is_sample = {}
    for part in ("train", "validation", "test"):
        is_sample[part] = str(config.get(f"{part}_data_path")).startswith(f"{FIXTURES}/")
    has_sample_vectors = any(text.startswith(f"{FIXTURES}/glove/") for text in strings_of(config))
    if has_sample_vectors and not is_sample["train"]:
        others = f", such as {_OPEN_GLOVE}" if _OPEN_GLOVE.exists() else ""
        logger.warning(
            "using the word vectors of the sample data, which lack most words and so cost "
            "accuracy; set ELMO_TASKS_GLOVE to the path of a file of vectors%s",
            others,
        )
    if any(is_sample.values()) and not os.environ.get("ELMO_TASKS_DATA"):
        logger.warning(
            "ELMO_TASKS_DATA is not set: using the small data in %s, for trying things out",
            FIXTURES,
        )


# What is kept of the loggers that write hundreds of lines in each training: the settings are in
# `config.json`, and the scores of each label in `metrics.json`.
_KEPT_LOG = {
    "allennlp.common.params": r"(?!)",
    "allennlp.common.util": "Metrics",
    "allennlp.training.callbacks.console_logger": (
        r"(?!(precision|recall|f1-measure)-(?!overall)).*\|"
    ),
}


def log_less() -> None:
    """
    Leaves out most of what AllenNLP logs in a training at the level INFO, unless
    `ALLENNLP_LOG_LEVEL` is set.
    """
    if os.environ.get("ALLENNLP_LOG_LEVEL"):
        return
    for name, kept in _KEPT_LOG.items():
        logging.getLogger(name).addFilter(partial(_is_kept, re.compile(kept)))


def _is_kept(kept: re.Pattern[str], record: logging.LogRecord) -> bool:
    return record.levelno > logging.INFO or kept.match(record.getMessage()) is not None


def missing_files(config: Any, data: str) -> list[str]:
    """The files in the data folder that an evaluated config names, and that do not exist."""
    # Folders are not checked, because they may be outputs, such as caches.
    files = {
        text for text in strings_of(config) if text.startswith(f"{data}/") and Path(text).suffix
    }
    return sorted(path for path in files if not _exists(path))


def _exists(path: str) -> bool:
    path, _ = parts_of_file(path)
    # The path of a language model's text may be a glob pattern.
    return os.path.exists(path) or bool(glob.glob(path, recursive=True))
