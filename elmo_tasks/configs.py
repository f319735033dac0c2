"""
The configs: how Jsonnet evaluates them, and their external variables for the data and the biLM.

A config imports the options of the biLM with `import 'ELMO_TASKS_BILM/options.json'`, so they become part of the
evaluated config and of the archive.
"""

import functools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import _jsonnet

from elmo_tasks.bilm.formats import read_any_options
from elmo_tasks.compat.config_error import ConfigFileError
from elmo_tasks.shipped import DEFAULT_BILM, FIXTURES, TRAINING_CONFIGS
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["config_variables", "evaluate_file", "glove_files", "strings_of"]

_DATA, _GLOVE, _BILM, _LAYER = "ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE", "ELMO_TASKS_BILM", "ELMO_TASKS_LAYER"
_SHIPPED_GLOVE = "glove.open.100d.txt.gz"


def config_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """
    The variables with their values from the environment, or their defaults. An empty value counts as not set. If the
    data folder has exactly one file in `glove/`, that file is the default of `ELMO_TASKS_GLOVE`.
    """
    data = os.path.expanduser(environ.get(_DATA) or str(FIXTURES))
    files = glove_files(data)
    return {
        _DATA: data,
        _GLOVE: os.path.expanduser(environ.get(_GLOVE) or (files[0] if len(files) == 1 else _SHIPPED_GLOVE)),
        _BILM: os.path.expanduser(environ.get(_BILM) or DEFAULT_BILM),
        _LAYER: environ.get(_LAYER) or "1",
    }


def glove_files(data: str) -> list[str]:
    return sorted(path.name for path in Path(data, "glove").glob("[!_]*d.txt*"))


def evaluate_file(filename: str, ext_vars: dict[str, str]) -> str:
    """
    Evaluates a Jsonnet file to JSON, like `_jsonnet.evaluate_file`, with our variables. `ext_vars` take precedence;
    AllenNLP passes the environment in them too.
    """
    variables = config_variables({**os.environ, **ext_vars})
    callbacks = _Callbacks(variables[_BILM])
    try:
        evaluated: str = _jsonnet.evaluate_file(
            filename,
            ext_vars={**ext_vars, **variables},
            import_callback=callbacks.import_file,
            native_callbacks={"elmo_transformer": (("model_name",), callbacks.transformer)},
        )
    except RuntimeError as error:
        raise callbacks.error or ConfigFileError(f"{filename}: {error}") from None
    return evaluated


class _Callbacks:
    """Functions that Jsonnet calls to evaluate a config. Jsonnet reduces errors to text; `error` is the original."""

    def __init__(self, bilm: str) -> None:
        self._bilm = bilm
        self.error: BaseException | None = None

    def transformer(self, model_name: str) -> dict[str, Any]:
        """The type of a transformer and the width of its layers: `std.native('elmo_transformer')`."""
        from transformers import AutoConfig

        try:
            config = AutoConfig.from_pretrained(model_name)
            return {"model_type": config.model_type, "width": config.hidden_size}
        except (OSError, ValueError) as error:
            self.error = ConfigFileError(str(error))
            raise

    def import_file(self, folder: str, name: str) -> tuple[str, bytes]:
        """The path and content of an imported file. The biLM's `weights` and `word_list` evaluate to file paths."""
        root, _, rest = name.partition("/")
        if root != _BILM:
            path = os.path.join(folder, name)
            if not os.path.exists(path) and (TRAINING_CONFIGS / name).is_file():
                # A config in any folder may import `lib/ner.libsonnet`.
                path = str(TRAINING_CONFIGS / name)
            return path, Path(path).read_bytes()
        try:
            return name, json.dumps(self._part_of_bilm(rest)).encode()
        except KeyboardInterrupt as interrupt:
            self.error = interrupt
            raise
        except Exception as error:
            self.error = ConfigFileError(f"{_BILM}: {error}")
            raise

    @functools.cached_property
    def _files(self) -> tuple[Path, Path]:
        # A biLM is downloaded or unpacked only here, because a config without ELMo does not need one.
        return pretrained_files(self._bilm)

    def _part_of_bilm(self, name: str) -> Any:
        options_file, weight_file = self._files
        if name == "weights":
            return str(weight_file)
        if name == "word_list":
            file = options_file.with_name("vocab.txt")
            return str(file) if file.is_file() else None
        return read_any_options(options_file).to_dict()


def strings_of(config: Any) -> Iterator[str]:
    """All values in a config that are strings."""
    if isinstance(config, str):
        yield config
    elif isinstance(config, dict | list):
        for value in config.values() if isinstance(config, dict) else config:
            yield from strings_of(value)
