"""Training without the test data that a config names."""

import functools
import logging
import os
from collections.abc import Callable
from typing import Any, TypeVar

from allennlp.common import Params

__all__ = ["with_optional_test_data"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


def with_optional_test_data(train: Callable[..., T]) -> Callable[..., T]:
    """
    AllenNLP's `train_model`, or another function that takes `Params` first, for configs whose test data may be missing.
    AllenNLP reads it at the start of a training; here, a local `test_data_path` that does not exist is dropped with a
    warning, unless `evaluate_on_test` needs it.
    """

    @functools.wraps(train)
    def train_without(params: Params, *args: Any, **kwargs: Any) -> T:
        path = params.get("test_data_path")
        is_missing = isinstance(path, str) and "://" not in path and not os.path.exists(path)
        if is_missing and not params.get("evaluate_on_test", False):
            logger.warning("%s does not exist: this training has no test data", params.pop("test_data_path"))
        return train(params, *args, **kwargs)

    return train_without
