"""The module that AllenNLP imports: it registers all our classes, and tells configs and trainings where the data is."""

import allennlp.commands.train
import allennlp.common.params

from elmo_tasks import commands, data, environment, models, modules, predictors, training

__all__ = ["commands", "data", "models", "modules", "predictors", "training"]

allennlp.common.params.evaluate_file = environment.evaluate_file
allennlp.commands.train.train_model = environment.with_checked_data(allennlp.commands.train.train_model)
