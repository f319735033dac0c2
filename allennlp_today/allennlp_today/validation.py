"""The validation of a training of AllenNLP 2.10.1."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from allennlp_today.import_hooks import Module, after_import, replaces

__all__: list[str] = []

# In an error.
_MAX_NAMES = 20


@after_import("allennlp.training.gradient_descent_trainer")
def name_unknown_metrics(gradient_descent_trainer: Module) -> None:
    """
    Symptom: a `validation_metric` that the model does not have is an error after the first epoch,
    which does not say what metrics there are.
    Cause: the trainer looks for it only in the metrics of a validation.
    """

    @replaces(gradient_descent_trainer.GradientDescentTrainer, "_try_train")
    def try_train(original: Any, self: Any) -> Any:
        # Processes of a distributed training would have to evaluate together.
        if self._validation_data_loader is not None and not self._distributed:
            _check_metrics(self)
        return original(self)


def _check_metrics(trainer: Any) -> None:
    from allennlp.common.checks import ConfigurationError

    tracked = {name for _, name in trainer._metric_tracker.tracked_metrics}
    known = _names_without_data(trainer.model)
    if not tracked <= known:
        # Those of a single label have no name before the label occurs.
        known |= _names_in_validation(trainer, tracked - known)
    unknown = sorted(tracked - known)
    if unknown:
        names = [name for name in sorted(known) if not name.startswith("_")]
        listed = ", ".join(names[:_MAX_NAMES]) + ", ..." * (len(names) > _MAX_NAMES)
        raise ConfigurationError(f"expected a validation_metric of {listed}, got {unknown[0]!r}")


def _names_without_data(model: Any) -> set[str]:
    losses = {"loss"} if model.get_regularization_penalty() is None else {"loss", "reg_loss"}
    model.eval()
    try:
        return losses | set(model.get_metrics())
    # Some metrics have no value without data, and raise errors of any type.
    except Exception:
        return losses


def _names_in_validation(trainer: Any, wanted: set[str]) -> set[str]:
    """The names of metrics, from as many batches of the validation as the wanted ones need."""
    import torch

    model = trainer.model
    names: set[str] = set()
    with _same_random_numbers(), torch.no_grad():
        for batch in trainer._validation_data_loader:
            model(**batch)
            names |= set(model.get_metrics())
            if wanted <= names:
                break
    names |= set(model.get_metrics(reset=True))
    return names


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Random numbers after the block are those that would have been drawn without it."""
    import numpy
    import torch

    python, arrays = random.getstate(), numpy.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        numpy.random.set_state(arrays)
