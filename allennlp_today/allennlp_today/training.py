"""Killed and recovered trainings of AllenNLP 2.10.1, and the workers of data loaders."""

from pathlib import Path
from typing import Any
from unittest import mock

from allennlp_today.files import atomic_file
from allennlp_today.import_hooks import Module, after_import, replaces


@after_import("allennlp.training.gradient_descent_trainer")
def write_best_weights_whole(gradient_descent_trainer: Module) -> None:
    """
    Symptom: after a kill while `best.th` is written, `--recover` ends with an archive that cannot be opened.
    Cause: `_save_model_state` writes in place.
    """

    @replaces(gradient_descent_trainer.GradientDescentTrainer, "_save_model_state")
    def save(original: Any, self: Any, path: str) -> None:
        with atomic_file(Path(path)) as temporary:
            original(self, str(temporary))


@after_import("allennlp.models.archival")
def write_archives_whole(archival: Module) -> None:
    """
    Symptom: a training that is killed at its end leaves a truncated archive.
    Cause: `archive_model` writes in place.
    """

    @replaces(archival, "archive_model")
    def archive(
        original: Any,
        serialization_dir: Any,
        weights: str = "best.th",
        archive_path: Any = None,
        include_in_archive: Any = None,
    ) -> str:
        path = Path(serialization_dir if archive_path is None else archive_path)
        path = path / "model.tar.gz" if path.is_dir() else path
        with atomic_file(path) as temporary:
            original(serialization_dir, weights, temporary, include_in_archive)
        return str(path)


@after_import("allennlp.training.gradient_descent_trainer")
def end_recovered_runs_that_had_ended(gradient_descent_trainer: Module) -> None:
    """
    Symptom: after a kill when the patience has run out, `--recover` trains more epochs, and the score may differ.
    Cause: the trainer checks whether to stop only after a further epoch.
    """

    @replaces(gradient_descent_trainer.GradientDescentTrainer, "_maybe_restore_checkpoint")
    def restore(original: Any, self: Any) -> None:
        original(self)
        is_end_of_epoch = self._start_after_batches_in_epoch_completed == 0
        if self._start_after_epochs_completed and is_end_of_epoch and self._metric_tracker.should_stop_early():
            self._num_epochs = self._start_after_epochs_completed


@after_import("allennlp.data.data_loaders.multiprocess_data_loader")
def lock_in_context_of_workers(multiprocess_data_loader: Module) -> None:
    """
    Symptom: a data loader with `num_workers: 1` and `start_method: "spawn"` raises `RuntimeError: A SemLock
    created in a fork context is being shared with a process in a spawn context`.
    Cause: the lock of the progress bar comes from the default context, which Python checks since 3.11.
    """
    for name in ("_start_instance_workers", "_start_batch_workers"):

        @replaces(multiprocess_data_loader.MultiProcessDataLoader, name)
        def start_workers(original: Any, self: Any, queue: Any, ctx: Any) -> Any:
            with mock.patch.object(multiprocess_data_loader.mp, "RLock", ctx.RLock):
                return original(self, queue, ctx)
