"""The module that AllenNLP imports: it registers all our classes, and tells configs and trainings where the data is."""

import gc
import warnings

import allennlp.commands.train
import allennlp.common.params
import allennlp.training.gradient_descent_trainer as trainer
import torch

from elmo_tasks import commands, data, distillation, environment, models, modules, predictors, training

__all__ = ["commands", "data", "distillation", "models", "modules", "predictors", "training"]

allennlp.common.params.evaluate_file = environment.evaluate_file
allennlp.commands.train.train_model = environment.with_checked_data(allennlp.commands.train.train_model)
# A default callback rather than one of our configs: it serves any model with ELMo, and changes no config.
trainer.DEFAULT_CALLBACKS = (*trainer.DEFAULT_CALLBACKS, training.LearnedMixCallback)

# x86 processors compute with numbers below 1.2e-38 a hundred times as slowly as with others.
torch.set_flush_denormal(True)
# Data sets are millions of objects, nearly all long-lived: Python's own thresholds would cost a third of the loading.
gc.set_threshold(100_000, 50, 50)
warnings.filterwarnings("ignore", r"`torch\.cuda\.amp", FutureWarning)
