"""Scores that AllenNLP 2.10.1 gives to data without labels, and to runs that were recovered."""

from functools import wraps
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = ["end_recovered_runs_that_had_ended", "refuse_evaluation_without_labels", "refuse_validation_without_labels"]


def refuse_evaluation_without_labels(util: Module) -> None:
    """
    Symptom: the score of a file without labels is 0.0, in `allennlp evaluate` and in the metrics of a training.

    Cause: readers take such files, for predictions, and `evaluate` asks the model for scores of nothing. For models of
    this package it is an error, after the predictions, if there are any, have been written.
    """
    original = util.evaluate

    @wraps(original)
    def evaluate(model: Any, data_loader: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        metrics: dict[str, Any] = original(model, data_loader, *args, **kwargs)
        if "loss" not in metrics:
            _refuse(model, data_loader)
        return metrics

    util.evaluate = evaluate


def refuse_validation_without_labels(gradient_descent_trainer: Module) -> None:
    """
    Symptom: with validation data without labels every epoch scores 0.0, and the first one counts as the best.

    Cause: as in `refuse_evaluation_without_labels`.
    """
    trainer = gradient_descent_trainer.GradientDescentTrainer
    original = trainer._validation_loss

    @wraps(original)
    def _validation_loss(self: Any, epoch: int) -> tuple[float, float | None, int]:
        found: tuple[float, float | None, int] = original(self, epoch)
        # One process of several may have no data.
        if found[2] == 0 and not self._distributed:
            _refuse(self.model, self._validation_data_loader)
        return found

    trainer._validation_loss = _validation_loss


def _refuse(model: Any, data_loader: Any) -> None:
    from allennlp.common.checks import ConfigurationError

    if type(model).__module__.startswith("elmo_tasks."):
        raise ConfigurationError(
            f"data must have labels to be scored, but {getattr(data_loader, 'data_path', 'this file')} has none: give "
            "a file with labels; predictions need none, see `allennlp predict`"
        )


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
