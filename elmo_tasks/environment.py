"""
Data and biLM of the configs: the external variables of the files in `training_configs/`.

`elmo_tasks/variables.py` lists all variables, with their meanings and defaults. One that is not set, or empty,
defaults to what ships with this package. A config imports the options of the biLM as
`import 'ELMO_TASKS_BILM/options.json'`, so that they are a part of the evaluated config, and of an archive.
"""

import functools
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import _jsonnet
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path

from elmo_tasks.bilm.many_langs import read_any_options
from elmo_tasks.files.atomic_files import TEMPORARY
from elmo_tasks.files.folders import matches
from elmo_tasks.shipped import DEFAULT_BILM, FIXTURES, PRETRAINED
from elmo_tasks.vectors.pretrained import NAMED_BILMS, cache_home, pretrained_files, weight_file_in

__all__ = [
    "check_data",
    "config_variables",
    "evaluate_file",
    "glove_remedy",
    "inputs_of_config",
    "small_data_notice",
    "with_checked_data",
]

_DATA, _GLOVE, _BILM, _LAYER = "ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE", "ELMO_TASKS_BILM", "ELMO_TASKS_LAYER"
_SHIPPED_GLOVE = "glove.open.100d.txt.gz"
# Next to all that end with `_data_path`. Other paths of a config may be outputs: of a cache, of a callback.
_INPUTS = ("pretrained_file", "pretrained_files")

# Tags and column names of data sets are Latin in every language.

logger = logging.getLogger(__name__)


def config_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """
    The variables with the values they have in the environment, or else their defaults: what ships with the project; and
    for `ELMO_TASKS_GLOVE` the only file in the folder `glove` of the data, if there is just one.

    # Parameters

    environ
        The environment; an empty value counts as not set.
    """
    data = os.path.expanduser(environ.get(_DATA) or str(FIXTURES))
    files = _glove_files(data)
    return {
        _DATA: data,
        _GLOVE: os.path.expanduser(environ.get(_GLOVE) or (files[0] if len(files) == 1 else _SHIPPED_GLOVE)),
        _BILM: os.path.expanduser(environ.get(_BILM) or DEFAULT_BILM),
        _LAYER: environ.get(_LAYER) or "1",
    }


def _glove_files(data: str) -> list[str]:
    # Next to those that were downloaded lie their checksums, and those that are being written.
    files = (path.name for path in Path(data, "glove").glob("*d.txt*"))
    return sorted(name for name in files if not name.endswith(".sha256") and not name.startswith(TEMPORARY))


def evaluate_file(filename: str, ext_vars: dict[str, str]) -> str:
    """
    Evaluates a Jsonnet file as `_jsonnet.evaluate_file` does, with our variables.

    # Parameters

    filename
        The file.
    ext_vars
        Further external variables, which take precedence over the environment. AllenNLP passes the environment too.

    # Returns

    `str`
        JSON.

    # Raises

    `ConfigurationError`
        If the config needs the biLM or a transformer, and it is not there.
    """
    variables = config_variables({**os.environ, **ext_vars})
    callbacks = _Callbacks(variables[_BILM])
    variables[_BILM] = callbacks.folder
    try:
        evaluated: str = _jsonnet.evaluate_file(
            filename,
            ext_vars={**ext_vars, **variables},
            import_callback=callbacks.import_file,
            native_callbacks={"elmo_transformer": (("model_name",), callbacks.transformer)},
        )
    except RuntimeError as error:
        if callbacks.error is not None:
            raise callbacks.error from None
        raise ConfigurationError(f"{filename} must be Jsonnet that can be evaluated, but is not: {error}") from None
    return evaluated


class _Callbacks:
    """
    What Jsonnet calls to evaluate a config. It turns an error of theirs, or Ctrl-C, into a text without line breaks or
    type: `error` keeps it.

    # Parameters

    bilm
        As the variable names it.
    """

    def __init__(self, bilm: str) -> None:
        self._bilm = bilm
        self.folder = _folder_of(bilm)
        self.error: BaseException | None = None

    def transformer(self, model_name: str) -> dict[str, Any]:
        """The type of a transformer and the width of its layers: `std.native('elmo_transformer')`."""
        from transformers import AutoConfig

        try:
            config = AutoConfig.from_pretrained(model_name)
            return {"model_type": config.model_type, "width": config.hidden_size}
        except (OSError, ValueError) as error:
            self.error = ConfigurationError(str(error))
            raise

    def import_file(self, folder: str, name: str) -> tuple[str, bytes]:
        """The path and content of an imported file; of the biLM, `weights` and `word_list` are paths of files."""
        root, _, rest = name.partition("/")
        if root != _BILM:
            path = os.path.join(folder, name)
            return path, Path(path).read_bytes()
        if rest == "weights":
            return name, json.dumps(_weight_file(self.folder)).encode()
        if rest == "word_list":
            return name, json.dumps(_word_list(self.folder)).encode()
        return self._file_of_bilm(rest)

    def _file_of_bilm(self, name: str) -> tuple[str, bytes]:
        path = f"{self.folder}/{name}"
        try:
            if "://" in self._bilm:
                return path, Path(cached_path(path)).read_bytes()
            # Downloads what has a name, and only here: a config without ELMo needs no biLM.
            options_file, _ = pretrained_files(self._bilm)
            if name == "options.json" and options_file.name != name:
                # A model of ELMoForManyLangs.
                return path, json.dumps(read_any_options(options_file).to_dict()).encode()
            return path, Path(path).read_bytes()
        except KeyboardInterrupt as interrupt:
            self.error = interrupt
            raise
        except Exception as error:
            self.error = ConfigurationError(
                f"{_BILM} must be the name of a biLM, or a folder (or its URL) with options.json and weights.hdf5, "
                f"but is {self._bilm!r}, and {path} cannot be read: {error}"
            )
            raise


def _weight_file(folder: str) -> str:
    """The weights of a biLM, in the format that its folder has them in; of a URL only one is known."""
    return f"{folder}/weights.hdf5" if "://" in folder else str(weight_file_in(Path(folder)))


def _word_list(folder: str) -> str | None:
    """The words of a biLM's softmax; `None` if it has none, as those that are published by their names."""
    file = f"{folder}/vocab.txt"
    return file if "://" not in folder and Path(file).is_file() else None


def _folder_of(bilm: str) -> str:
    """Where a biLM is, or will be once it is downloaded."""
    if bilm not in NAMED_BILMS:
        return bilm.rstrip("/")
    return str((PRETRAINED if NAMED_BILMS[bilm] is None else cache_home()) / bilm)


def with_checked_data(train_model: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps AllenNLP's `train_model`, so that a training begins with `check_data`."""

    @functools.wraps(train_model)
    def train(params: Params, *args: Any, **kwargs: Any) -> Any:
        check_data(params)
        return train_model(params, *args, **kwargs)

    return train


def check_data(params: Params, environ: Mapping[str, str] = os.environ) -> None:
    """
    Looks whether the data that a config trains on is there, and logs a warning if it is the small data that ships
    because no other was named.

    AllenNLP reads the `test_data_path` at the start of a training; one that is not there is dropped with a warning,
    unless `evaluate_on_test` needs it.

    # Parameters

    params
        An evaluated config, whose `test_data_path` may be dropped.
    environ
        The environment.

    # Raises

    `ConfigurationError`
        If an input below the folder of the data is missing, or test data that `evaluate_on_test` needs. The message
        says how to get it, or how to do without it.
    """
    _drop_missing_test_data(params)
    root = config_variables(environ)[_DATA].rstrip("/")
    used = [(key, path) for key, path in inputs_of_config(params.as_dict(quiet=True)) if path.startswith(f"{root}/")]
    for key, path in used:
        if not _is_there(path):
            raise ConfigurationError(_missing(key, Path(path), root))
    if used and (notice := small_data_notice(environ)):
        logger.warning(notice)


def small_data_notice(environ: Mapping[str, str] = os.environ) -> str | None:
    """A sentence for users who have named no data; `None` if `ELMO_TASKS_DATA` is set."""
    if environ.get(_DATA):
        return None
    return (
        f"{_DATA} is not set: this uses the small data that ships, {FIXTURES}, which is for trying things out. Set "
        f"{_DATA} to the folder of your own data"
    )


def glove_remedy(folder: Path) -> str:
    """The remedy for a file of word vectors that is not in the folder `glove` of the data."""
    files = _glove_files(str(folder.parent))
    if files:
        return f"choose one of {', '.join(files)} with {_GLOVE}"
    return (
        f"download GloVe from https://nlp.stanford.edu/projects/glove/, put a file such as glove.6B.100d.txt into "
        f"{folder}, and name it with {_GLOVE} if there are several"
    )


def _missing(key: str, path: Path, root: str) -> str:
    name = path.relative_to(root)
    folder = f"the folder of the data, {root} ({_DATA})"
    if name.parts[0] == "glove":
        return f"{folder}, must have the word vectors {name}, but does not: {glove_remedy(path.parent)}"
    remedy = f"put it there, or set {_DATA} to the folder that has it"
    return f"{folder}, must have {name}, which is the {key}, but does not: {remedy}"


def _drop_missing_test_data(params: Params) -> None:
    path = params.get("test_data_path")
    if not isinstance(path, str) or "://" in path or _is_there(path):
        return
    # A file in an archive, or a name that the reader alone knows.
    if "!" in path or not ("/" in path or "." in path):
        return
    if params.get("evaluate_on_test", False):
        raise ConfigurationError(
            f"the test_data_path must be there where evaluate_on_test is set, but {path} is not: put it there, or drop "
            "evaluate_on_test"
        )
    logger.warning("%s does not exist: this training has no test data", params.pop("test_data_path"))


def _is_there(path: str) -> bool:
    """Whether a path exists or, as the text of a language model may, is a pattern of files that do."""
    return os.path.exists(path) or bool(matches(path))


def inputs_of_config(config: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The paths of a config that must be there when a training begins, each with its key."""
    if isinstance(config, str):
        if key := _input_key(keys):
            yield key, config
    elif isinstance(config, dict):
        for name, value in config.items():
            yield from inputs_of_config(value, (*keys, name))
    elif isinstance(config, list):
        for value in config:
            yield from inputs_of_config(value, keys)


def _input_key(keys: tuple[str, ...]) -> str | None:
    """The key, of those that a string of a config is below, that makes it an input; `None` for all other strings."""
    if keys[-2:] == ("vocabulary", "path"):
        return "word list"
    # Below one of them there may be a dictionary: `pretrained_files: {tokens: ...}`.
    return next((key for key in keys if key.endswith("_data_path") or key in _INPUTS), None)
