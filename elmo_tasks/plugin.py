"""The module that AllenNLP imports: it registers all our classes, and gives configs and trainings the data paths."""

import tomllib
from importlib.resources import files
from typing import Any

import allennlp.commands.train
import allennlp.common.params
import allennlp.training.gradient_descent_trainer
from allennlp.common import Params
from allennlp.models import Model

from allennlp_today.import_hooks import replaces
from elmo_tasks import commands, configs, data, metrics, models, modules, predictors, trainer
from elmo_tasks.bilm.process import keep_freed_memory

__all__ = ["HARMLESS", "commands", "data", "metrics", "models", "modules", "predictors", "trainer"]

HARMLESS = tomllib.loads(files("elmo_tasks").joinpath("harmless.toml").read_text("utf-8"))
"""What archives that are not trusted may name."""

allennlp.common.params.evaluate_file = configs.evaluate_file
# Default callbacks, not some in our configs, so they work for any model with ELMo and leave configs unchanged.
defaults = allennlp.training.gradient_descent_trainer.DEFAULT_CALLBACKS
allennlp.training.gradient_descent_trainer.DEFAULT_CALLBACKS = (
    *defaults,
    trainer.LearnedMixCallback,
    trainer.RandomStateCallback,
)


@replaces(allennlp.commands.train, "train_model")
def train_model(original: Any, params: Params, *args: Any, **kwargs: Any) -> Any:
    configs.log_less()
    configs.check_data(params)
    if _trains_a_bilm(params):
        keep_freed_memory()
    return original(params, *args, **kwargs)


def _trains_a_bilm(params: Params) -> bool:
    name = params.as_dict(quiet=True).get("model", {}).get("type")
    if name not in Model.list_available():
        return False
    # Not `by_name`, which returns a method for "from_archive".
    model_class, _ = Model.resolve_class_name(name)
    return issubclass(model_class, models.BilmLanguageModel)
