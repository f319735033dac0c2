"""The module that AllenNLP imports: it registers all our classes, and gives configs and trainings the data paths."""

import gc

import allennlp.commands.train
import allennlp.common.params
import allennlp.training.gradient_descent_trainer as trainer
import torch

from elmo_tasks import commands, data, environment, models, modules, predictors, training

__all__ = ["commands", "data", "models", "modules", "predictors", "training"]

allennlp.common.params.evaluate_file = environment.evaluate_file
allennlp.commands.train.train_model = environment.with_checked_data(allennlp.commands.train.train_model)
# A default callback, not one in our configs, so it works for any model with ELMo and leaves configs unchanged.
trainer.DEFAULT_CALLBACKS = (*trainer.DEFAULT_CALLBACKS, training.LearnedMixCallback)

# On x86 processors, arithmetic with numbers below 1.2e-38 is a hundred times slower.
torch.set_flush_denormal(True)
# Data sets are millions of mostly long-lived objects: Python's thresholds would cost a third of the loading time.
gc.set_threshold(100_000, 50, 50)
