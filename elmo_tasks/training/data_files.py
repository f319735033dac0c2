"""The files of a config, checked before the training."""

import functools
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

__all__ = ["check_data_files", "with_checked_files"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_GLOVE = "https://nlp.stanford.edu/projects/glove/"


def check_data_files(params: Params) -> None:
    """
    Looks for the files of a config before anything is read. Test data that does not exist is dropped from the config,
    unless it is to be evaluated on: a training needs none.

    # Parameters

    params : `Params`
        What `allennlp train` trains.

    # Raises

    `ConfigurationError`
        If data to train or evaluate on, or a file of word vectors, does not exist; with the remedy.
    """
    for key in ("train_data_path", "validation_data_path"):
        if _is_missing(params.get(key)):
            raise ConfigurationError(_no_data(key, params.get(key)))
    if _is_missing(params.get("test_data_path")):
        if params.get("evaluate_on_test", False):
            raise ConfigurationError(
                f"{_no_data('test_data_path', params.get('test_data_path'))}, or drop evaluate_on_test"
            )
        logger.warning("%s does not exist: this training has no test data", params.pop("test_data_path"))
    vocabulary = params.get("vocabulary")
    vectors = vocabulary.get("pretrained_files") if isinstance(vocabulary, Params) else None
    for path in vectors.as_dict(quiet=True).values() if isinstance(vectors, Params) else ():
        if _is_missing(path):
            raise ConfigurationError(
                f"the word vectors '{path}' must exist, but do not: put a file of GloVe vectors into "
                f"'{Path(path).parent}', glove.6B.100d.txt from glove.6B.zip at {_GLOVE} for example, and set "
                "ELMO_TASKS_GLOVE to its name if the folder has several"
            )


def with_checked_files(train: Callable[..., T]) -> Callable[..., T]:
    """AllenNLP's `train_model`, or another function that takes `Params` first, behind `check_data_files`."""

    @functools.wraps(train)
    def checked(params: Params, *args: Any, **kwargs: Any) -> T:
        check_data_files(params)
        return train(params, *args, **kwargs)

    return checked


def _is_missing(path: Any) -> bool:
    """Whether a path is that of a local file or folder that does not exist; readers expand patterns themselves."""
    return isinstance(path, str) and "://" not in path and not set(path) & set("*?[!#") and not os.path.exists(path)


def _no_data(key: str, path: str) -> str:
    root = os.environ.get("ELMO_TASKS_DATA")
    return (
        f"{key} must be an existing file or folder, but '{path}' does not exist: put the data there, or set "
        f"ELMO_TASKS_DATA ({f'now {root!r}' if root else 'not set'}) to the folder of the data sets"
    )
