"""What a training of AllenNLP 2.10.1 checks before its first epoch."""

import difflib
import inspect
import logging
import random
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from allennlp_today.import_hooks import Module, after_import, replaces

__all__: list[str] = []

logger = logging.getLogger(__name__)

# In an error.
_MAX_NAMES = 20


@after_import("allennlp.training.gradient_descent_trainer")
def warn_of_options_without_effect(gradient_descent_trainer: Module) -> None:
    """
    Symptom: a mistyped option in the `trainer` of a config, such as `num_epoch`, is silently
    ignored, and so is a regular expression of `no_grad` or of a regularizer that matches no weight.
    Cause: the trainer takes any keyword, and looks for weights without counting them.
    """
    trainer = gradient_descent_trainer.GradientDescentTrainer

    @replaces(trainer, "from_partial_objects")
    def from_partial_objects(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
        signature = inspect.signature(original)
        given = signature.bind(cls, *args, **kwargs).arguments
        options = inspect.signature(cls.__init__).parameters.keys() | given.keys()
        # The old name of `run_confidence_checks`, which the constructor still accepts.
        options |= {"run_sanity_checks"}
        for name in given.get("kwargs", {}):
            if name not in options:
                hint = _hint_for(name, signature.parameters)
                logger.warning("the trainer has no option %s, which is ignored%s", name, hint)
        _warn_of_regexes(given["model"], given.get("no_grad") or ())
        return original(cls, *args, **kwargs)


def _hint_for(name: str, options: Iterable[str]) -> str:
    for nearest in difflib.get_close_matches(name, options, n=1):
        return f": did you mean {nearest}?"
    return ""


def _warn_of_regexes(model: Any, frozen: Iterable[str]) -> None:
    names = [name for name, _ in model.named_parameters()]
    penalized: list[str] = []
    regularizer = getattr(model, "_regularizer", None)
    if regularizer is not None:
        penalized = [regex for regex, _ in regularizer._regularizers]
    for option, regexes in {"no_grad": frozen, "regularizer": penalized}.items():
        for regex in regexes:
            if not any(re.search(regex, name) for name in names):
                logger.warning("%s: %s matches no weight of the model", option, regex)


@after_import("allennlp.training.gradient_descent_trainer")
def refuse_data_without_batches(gradient_descent_trainer: Module) -> None:
    """
    Symptom: with `drop_last` and less data than a batch, a training silently learns nothing, or
    its validation has a loss of 0, which is the best of all epochs.
    Cause: a loop over no batches is no error.

    With several workers, AllenNLP ends an epoch when one of them has no batch left.
    """

    @replaces(gradient_descent_trainer.GradientDescentTrainer, "_try_train")
    def try_train(original: Any, self: Any) -> Any:
        from allennlp.common.checks import ConfigurationError

        if self._distributed:
            return original(self)
        loaders = {"train": self.data_loader, "validation": self._validation_data_loader}
        for name, loader in loaders.items():
            if loader is not None and _n_batches(loader) == 0:
                raise ConfigurationError(
                    f"expected a batch of {name} data, got none: drop_last leaves out a batch with "
                    "fewer than batch_size instances"
                )
        return original(self)


def _n_batches(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        # The loader reads its data while they are used, and has no length.
        return None


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
        if len(names) > _MAX_NAMES:
            names = [*names[:_MAX_NAMES], "..."]
        expected = ", ".join(names)
        got = repr(unknown[0])
        raise ConfigurationError(f"expected one of {expected} as validation_metric, got {got}")


def _names_without_data(model: Any) -> set[str]:
    losses = {"loss"}
    if model.get_regularization_penalty() is not None:
        losses.add("reg_loss")
    # The trainer sets the mode again before each epoch.
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

    python_state = random.getstate()
    numpy_state = numpy.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python_state)
        numpy.random.set_state(numpy_state)
