"""
Where configs find data and biLM: the external variables of the files in `training_configs/`.

`ELMO_TASKS_DATA` is the folder of the data sets, `ELMO_TASKS_GLOVE` a file of word vectors in its folder `glove`,
`ELMO_TASKS_BILM` the folder (or its URL) of a biLM, with `options.json` and `weights.hdf5`, and `ELMO_TASKS_LAYER` the
layer for configs that take a single one, by default 1, the lowest LSTM. Each may be set in the environment; what is not
set is what ships with the project. A config imports the options of the biLM as `import 'ELMO_TASKS_BILM/options.json'`,
so that they are a part of the evaluated config, and of an archive.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import _jsonnet
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path

from elmo_tasks.shipped import FIXTURES, PRETRAINED

__all__ = ["config_variables", "evaluate_file"]

_BILM = "ELMO_TASKS_BILM"
_GLOVE = "glove.open.100d.txt.gz"


def config_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """
    The variables with the values they have in the environment, or else by default: what ships with the project; and for
    `ELMO_TASKS_GLOVE` the only file in the folder `glove` of the data, if there is just one.

    # Parameters

    environ : `Mapping[str, str]`, optional (default = `os.environ`)
        The environment.
    """
    data = environ.get("ELMO_TASKS_DATA") or str(FIXTURES)
    files = [path.name for path in Path(data, "glove").glob("*d.txt*")]
    return {
        "ELMO_TASKS_DATA": data,
        "ELMO_TASKS_GLOVE": environ.get("ELMO_TASKS_GLOVE") or (files[0] if len(files) == 1 else _GLOVE),
        _BILM: environ.get(_BILM) or str(PRETRAINED / "small-open"),
        "ELMO_TASKS_LAYER": environ.get("ELMO_TASKS_LAYER") or "1",
    }


def evaluate_file(filename: str, ext_vars: dict[str, str]) -> str:
    """
    Evaluates a Jsonnet file as `_jsonnet.evaluate_file` does, with our variables.

    # Parameters

    filename : `str`
        The file.
    ext_vars : `Dict[str, str]`
        Further external variables, which go before ours.

    # Returns

    `str`
        JSON.

    # Raises

    `ConfigurationError`
        If the options of the biLM are not there.
    """
    variables = {**config_variables(), **ext_vars}
    broken: list[ConfigurationError] = []

    def import_file(folder: str, name: str) -> tuple[str, bytes]:
        root, _, rest = name.partition("/")
        if root != _BILM:
            path = os.path.join(folder, name)
            return path, Path(path).read_bytes()
        path = f"{variables[_BILM].rstrip('/')}/{rest}"
        try:
            return path, Path(cached_path(path)).read_bytes()
        except Exception as error:
            # Jsonnet turns an error of its callback into a text without line breaks or type: say it ourselves.
            broken.append(
                ConfigurationError(
                    f"{_BILM} must be a folder with options.json and weights.hdf5, but is {variables[_BILM]!r}, and "
                    f"{path} cannot be read: {error}"
                )
            )
            raise

    try:
        evaluated: str = _jsonnet.evaluate_file(filename, ext_vars=variables, import_callback=import_file)
    except RuntimeError:
        if broken:
            raise broken[0] from None
        raise
    return evaluated
