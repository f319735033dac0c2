"""The module that AllenNLP imports: it registers all our classes, and tells configs and trainings where the data is."""

import allennlp.commands.train
import allennlp.common.params
import allennlp.training.gradient_descent_trainer as trainer

from elmo_tasks import commands, data, distillation, environment, models, modules, predictors, training

__all__ = ["commands", "data", "distillation", "models", "modules", "predictors", "training"]

allennlp.common.params.evaluate_file = environment.evaluate_file
allennlp.commands.train.train_model = environment.with_checked_data(allennlp.commands.train.train_model)
# A default callback, and not one of our configs: it says the same of any model with ELMo, and changes no config.
trainer.DEFAULT_CALLBACKS = (*trainer.DEFAULT_CALLBACKS, training.LearnedMixCallback)
