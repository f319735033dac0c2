from collections.abc import Callable
from typing import Any

import pytest
from allennlp.models import Model
from allennlp.predictors import Predictor

from tests.task_models import PLACES


@pytest.fixture
def made_predictor(make_model) -> Callable[..., Predictor]:
    """Makes the predictor of a model with random weights."""

    def make(
        task: str, places: str = "none", change: Callable[[Model], Any] = id, **arguments: Any
    ) -> Predictor:
        made = make_model(task, PLACES[places])
        change(made.model)
        return Predictor.by_name(made.model.default_predictor)(made.model, made.reader, **arguments)

    return make
