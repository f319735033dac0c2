"""The module that AllenNLP imports: it registers all our classes, and tells configs where the data is."""

import allennlp.common.params

from elmo_tasks import commands, data, environment, models, modules, predictors, training

__all__ = ["commands", "data", "models", "modules", "predictors", "training"]

allennlp.common.params.evaluate_file = environment.evaluate_file
