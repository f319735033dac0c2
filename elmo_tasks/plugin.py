"""
The module that AllenNLP imports: it registers all our classes, and gives configs and trainings the
data paths.
"""

import tomllib
from importlib.resources import files
from typing import Any

import allennlp.commands.train
import allennlp.common.params
import allennlp.training.gradient_descent_trainer
from allennlp.common import Params
from allennlp.models import Model

from allennlp_today.import_hooks import applied_now, replace, replaces
from elmo_tasks import configs, data, metrics, models, modules, trainer
from elmo_tasks.bilm.process import keep_freed_memory
from elmo_tasks.commands import config, demo, export, neighbors, perplexity, tables, wsd
from elmo_tasks.commands import data as data_command
from elmo_tasks.predictors import coref, ner, pos, snli, squad, srl, sst

__all__ = [
    "HARMLESS",
    "config",
    "coref",
    "data",
    "data_command",
    "demo",
    "export",
    "metrics",
    "models",
    "modules",
    "neighbors",
    "ner",
    "perplexity",
    "pos",
    "snli",
    "squad",
    "srl",
    "sst",
    "tables",
    "trainer",
    "wsd",
]

_HARMLESS_FILE = files("elmo_tasks") / "harmless.toml"
HARMLESS = tomllib.loads(_HARMLESS_FILE.read_text("utf-8"))
"""What archives that are not trusted may name."""


def _trains_a_bilm(params: Params) -> bool:
    model_params = params.as_dict(quiet=True).get("model", {})
    name = model_params.get("type")
    if name not in Model.list_available():
        return False
    # Not `by_name`, which returns a method for "from_archive".
    model_class, _ = Model.resolve_class_name(name)
    return issubclass(model_class, models.BilmLanguageModel)


@applied_now
def set_variables_in_configs() -> None:
    """
    Symptom: configs do not find the data, the biLM and the files that they share.
    Cause: AllenNLP knows only variables of the environment. Now configs have the defaults of this
    package.
    """
    replace(allennlp.common.params, "evaluate_file", configs.evaluate_file)


@applied_now
def add_callbacks_of_trainings() -> None:
    """
    Symptom: a training does not print the learned mix, and other random numbers follow a recovery.
    Cause: these are callbacks. As defaults they work for any model with ELMo, and leave configs
    unchanged.
    """
    gradient_descent_trainer = allennlp.training.gradient_descent_trainer
    added = (trainer.LearnedMixCallback, trainer.RandomStateCallback)
    callbacks = tuple(gradient_descent_trainer.DEFAULT_CALLBACKS) + added
    replace(gradient_descent_trainer, "DEFAULT_CALLBACKS", callbacks)


@applied_now
def check_data_before_a_training() -> None:
    """
    Symptom: a training without its data ends after minutes, and one of a biLM is slower than it
    could be.
    Cause: files are opened when they are read, and glibc returns freed memory to the system.
    """

    @replaces(allennlp.commands.train, "train_model")
    def train_model(original: Any, params: Params, *args: Any, **kwargs: Any) -> Any:
        configs.log_less()
        configs.check_data(params)
        if _trains_a_bilm(params):
            keep_freed_memory()
        return original(params, *args, **kwargs)
