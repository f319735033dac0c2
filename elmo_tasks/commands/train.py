"""What `allennlp train` checks before it reads any data."""

import glob
import logging
import os
from pathlib import Path

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.configs import config_variables, glove_files, strings_of
from elmo_tasks.shipped import FIXTURES

__all__ = ["check_data"]

logger = logging.getLogger(__name__)


def check_data(params: Params) -> None:
    """
    Raises a `ConfigurationError` if an evaluated config names a file in the data folder that does not exist, or if a
    distributed training would fail after its last epoch. Missing test data is dropped with a warning, unless
    `evaluate_on_test` needs it. If `ELMO_TASKS_DATA` is not set, it warns that the small sample data is used.
    """
    if params.get("distributed") and params.get("evaluate_on_test", False):
        # Only the first worker evaluates, but the metrics are summed over all workers.
        raise ConfigurationError("a distributed training cannot evaluate_on_test: run `allennlp evaluate` afterwards")
    root = config_variables()["ELMO_TASKS_DATA"].rstrip("/")
    test = params.get("test_data_path")
    in_root = isinstance(test, str) and test.startswith(f"{root}/")
    if in_root and not _exists(test) and not params.get("evaluate_on_test", False):
        logger.warning("%s does not exist: this training has no test data", params.pop("test_data_path"))
    # Folders are not checked, because they may be outputs, such as caches.
    paths = [text for text in strings_of(params.as_dict(quiet=True)) if text.startswith(f"{root}/")]
    for path in paths:
        if not Path(path).suffix or _exists(path):
            continue
        hint = "copy it there, or set ELMO_TASKS_DATA to a different folder"
        if path.startswith(f"{root}/glove/"):
            hint = f"`allennlp elmo-data glove` downloads GloVe; or set ELMO_TASKS_GLOVE to one of {glove_files(root)}"
        raise ConfigurationError(f"{path} does not exist: {hint}")
    if paths and not os.environ.get("ELMO_TASKS_DATA"):
        logger.warning("ELMO_TASKS_DATA is not set: using the small data in %s, for trying things out", FIXTURES)


def _exists(path: str) -> bool:
    # The path of a language model's text may be a glob pattern.
    return os.path.exists(path) or bool(glob.glob(path, recursive=True))
