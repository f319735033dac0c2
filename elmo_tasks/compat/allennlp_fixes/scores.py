"""Scores that AllenNLP 2.10.1 gives to data without labels, and to runs that were recovered."""

import logging
import random
from functools import wraps
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = [
    "average_losses_of_recovered_epochs",
    "end_recovered_runs_that_had_ended",
    "omit_scores_of_evaluations_without_labels",
    "omit_scores_of_tests_without_labels",
    "refuse_training_without_labels",
    "refuse_trainings_that_cannot_end",
]

logger = logging.getLogger(__name__)


def omit_scores_of_tests_without_labels(util: Module) -> None:
    """
    Symptom: the test score of a training is 0.0 if its test data has no labels.

    Cause: readers take such files, for predictions, and `evaluate` asks the model for scores of nothing. For models of
    this package there are none then, and a warning.
    """
    original = util.evaluate

    @wraps(original)
    def evaluate(
        model: Any,
        data_loader: Any,
        cuda_device: Any = -1,
        batch_weight_key: str | None = None,
        output_file: str | None = None,
        predictions_output_file: str | None = None,
    ) -> dict[str, Any]:
        metrics = original(model, data_loader, cuda_device, batch_weight_key, None, predictions_output_file)
        return _written(_of_labels(metrics, model, data_loader), output_file)

    util.evaluate = evaluate


def omit_scores_of_evaluations_without_labels(evaluator: Module) -> None:
    """
    Symptom: the scores of `allennlp evaluate` on data without labels are 0.0.

    Cause: as in `omit_scores_of_tests_without_labels`.
    """
    original = evaluator.SimpleEvaluator.__call__

    @wraps(original)
    def __call__(
        self: Any,
        model: Any,
        data_loader: Any,
        batch_weight_key: str | None = None,
        metrics_output_file: Any = None,
        predictions_output_file: Any = None,
    ) -> dict[str, Any]:
        metrics = original(self, model, data_loader, batch_weight_key, None, predictions_output_file)
        return _written(_of_labels(metrics, model, data_loader), metrics_output_file)

    evaluator.SimpleEvaluator.__call__ = __call__


def _of_labels(metrics: dict[str, Any], model: Any, data_loader: Any) -> dict[str, Any]:
    if "loss" in metrics or not _is_ours(model):
        return metrics
    logger.warning("%s has no labels: there are no scores of it", _name_of(data_loader))
    return {}


def _written(metrics: dict[str, Any], path: Any) -> dict[str, Any]:
    from allennlp.common.util import dump_metrics

    if path is not None:
        dump_metrics(str(path), metrics, log=True)
    return metrics


def refuse_training_without_labels(gradient_descent_trainer: Module) -> None:
    """
    Symptom: training data without labels ends with `The model you are trying to optimize does not contain a 'loss' key`
    if another file has labels. With validation data without labels every epoch scores 0.0, and the first one counts as
    the best.

    Cause: readers take such files, for predictions.
    """
    from allennlp.common.checks import ConfigurationError

    trainer = gradient_descent_trainer.GradientDescentTrainer
    batch_outputs, validation_loss = trainer.batch_outputs, trainer._validation_loss

    def refuse(self: Any, data_loader: Any) -> None:
        if _is_ours(self.model):
            raise ConfigurationError(
                f"data to train and to validate on must have labels, but {_name_of(data_loader)} has none: give a file "
                "with labels, or remove it from the config if it is to validate on"
            )

    @wraps(batch_outputs)
    def with_loss(self: Any, batch: Any, for_training: bool) -> dict[str, Any]:
        try:
            outputs: dict[str, Any] = batch_outputs(self, batch, for_training)
        except RuntimeError as error:
            if "does not contain a 'loss' key" in str(error):
                refuse(self, self.data_loader)
            raise
        return outputs

    @wraps(validation_loss)
    def with_losses(self: Any, epoch: int) -> tuple[float, float | None, int]:
        found: tuple[float, float | None, int] = validation_loss(self, epoch)
        # One process of several may have no data.
        if found[2] == 0 and not self._distributed:
            refuse(self, self._validation_data_loader)
        return found

    trainer.batch_outputs, trainer._validation_loss = with_loss, with_losses


def _is_ours(part: Any) -> bool:
    return type(part).__module__.startswith("elmo_tasks.")


def _n_batches(data_loader: Any) -> int | None:
    """`None` where that is not known before the data is read. Some samplers shuffle to count, so the order is kept."""
    state = random.getstate()
    try:
        return len(data_loader)
    except TypeError:
        return None
    finally:
        random.setstate(state)


def _name_of(data_loader: Any) -> Any:
    return getattr(data_loader, "data_path", "this data")


def refuse_trainings_that_cannot_end(gradient_descent_trainer: Module) -> None:
    """
    Symptom: a `validation_metric` that the model does not have ends a training after its first epoch, which is lost,
    and the error does not say which metrics there are. So does a dev text of a language model that cannot be read, and
    validation data without a batch, of which `drop_last` may leave none. With `num_epochs` of 0 the best weights are
    missing at the end.

    Cause: the trainer looks for the metric among those of a validation. For models of this package it is known before.
    Data loaders of a language model read a text only for its batches.
    """
    from allennlp.common.checks import ConfigurationError

    trainer = gradient_descent_trainer.GradientDescentTrainer
    original = trainer.train

    @wraps(original)
    def train(self: Any) -> dict[str, Any]:
        if self._num_epochs < 1:
            raise ConfigurationError(f"num_epochs of the trainer must be at least 1, but is {self._num_epochs}")
        if self._validation_data_loader is not None and _is_ours(self.model):
            known = sorted({"loss", "reg_loss", *_metrics_of(self.model)})
            # Of some metrics there is one for each label, which only a batch shows.
            by_label = {*known, *(name.rpartition("-")[0] for name in known)} - {""}
            for _, name in self._metric_tracker.tracked_metrics:
                if name not in known and name.rpartition("-")[0] not in by_label:
                    raise ConfigurationError(
                        f"validation_metric of the trainer must be one of {', '.join(known)}, with + or - before it, "
                        f"but is {name!r}"
                    )
        # One process of several may have no data.
        if _is_ours(self.model) and not self._distributed:
            for data_loader in (self.data_loader, self._validation_data_loader):
                if data_loader is not None and _n_batches(data_loader) == 0:
                    raise ConfigurationError(
                        f"data to train and to validate on must have a batch, but {_name_of(data_loader)} has none: "
                        "give more data, or set smaller batches or drop_last: false for its data loader"
                    )
        if (check_text := getattr(self._validation_data_loader, "check_text", None)) is not None:
            check_text()
        metrics: dict[str, Any] = original(self)
        return metrics

    trainer.train = train


def _metrics_of(model: Any) -> set[str]:
    was_training = model.training
    try:
        # Some of them are those of a validation alone.
        return set(model.eval().get_metrics(reset=False))
    finally:
        model.train(was_training)


def average_losses_of_recovered_epochs(gradient_descent_trainer: Module) -> None:
    """
    Symptom: the training loss of an epoch in the midst of which a run was recovered is several times too low.

    Cause: the losses since then are divided by all batches of the epoch, also those before. What is shown while the
    epoch runs is not corrected.
    """
    trainer = gradient_descent_trainer.GradientDescentTrainer
    original = trainer._train_epoch

    @wraps(original)
    def _train_epoch(self: Any, epoch: int) -> dict[str, float]:
        metrics: dict[str, float] = original(self, epoch)
        is_recovered = self._epochs_completed == self._start_after_epochs_completed
        before = self._start_after_batches_in_epoch_completed if is_recovered else 0
        of_all = self._batches_in_epoch_completed
        if 0 < before < of_all:
            # Processes have the same number of batches.
            for name in {"loss", "reg_loss"} & metrics.keys():
                metrics[name] *= of_all / (of_all - before)
        return metrics

    trainer._train_epoch = _train_epoch


def end_recovered_runs_that_had_ended(gradient_descent_trainer: Module) -> None:
    """
    Symptom: a run that was killed after its last epoch, when its patience had run out, trains on after `--recover`, and
    its score may be another.

    Cause: the trainer asks whether to stop only after a further epoch.
    """
    trainer = gradient_descent_trainer.GradientDescentTrainer
    original = trainer._maybe_restore_checkpoint

    @wraps(original)
    def _maybe_restore_checkpoint(self: Any) -> None:
        original(self)
        is_end_of_epoch = self._start_after_batches_in_epoch_completed == 0
        if self._start_after_epochs_completed and is_end_of_epoch and self._metric_tracker.should_stop_early():
            self._num_epochs = self._start_after_epochs_completed

    trainer._maybe_restore_checkpoint = _maybe_restore_checkpoint
