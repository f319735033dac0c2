"""Killed and recovered trainings of AllenNLP 2.10.1, and the workers of data loaders."""

import shutil
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from allennlp_today.files import atomic_file, locked, remove_leftovers
from allennlp_today.import_hooks import Module, after_import, replaces

__all__ = ["SHARED_WEIGHTS"]

SHARED_WEIGHTS: list[str] = []
"""
Names of files in the folder of a run, with weights that all epochs share, so that the files of the
epochs leave them out. A checkpointer that writes such a file adds its name.
"""


@after_import("allennlp.training.gradient_descent_trainer")
def write_best_weights_whole(gradient_descent_trainer: Module) -> None:
    """
    Symptom: after a kill while `best.th` is written, `--recover` ends with an archive that cannot
    be opened. After a kill just before, it has the weights of an earlier epoch, or `best.th` does
    not exist. Cause: `_save_model_state` writes in place, and after the checkpoint with the score
    of these weights.
    """

    @replaces(gradient_descent_trainer.GradientDescentTrainer, "_save_model_state")
    def save(original: Any, self: Any, path: str) -> None:
        with atomic_file(Path(path)) as temporary:
            original(self, str(temporary))

    @replaces(gradient_descent_trainer.GradientDescentTrainer, "_maybe_restore_checkpoint")
    def restore(original: Any, self: Any) -> None:
        original(self)
        if self._moving_average is not None:
            _follow(self._moving_average, self.model)
        if _ended_with_the_best_epoch(self):
            self._best_model_filename = str(Path(self._serialization_dir, "best.th"))
            if self._primary:
                _save_best_weights(self)


def _follow(average: Any, model: Any) -> None:
    """Makes a moving average follow the parameters of a model, which a checkpoint has replaced."""
    average._parameters = [
        (name, parameter)
        for name, parameter in model.named_parameters()
        if name in average._shadows
    ]


def _ended_with_the_best_epoch(trainer: Any) -> bool:
    """Whether the checkpoint is from the end of an epoch, and no earlier one was better."""
    epochs = trainer._start_after_epochs_completed
    if epochs == 0 or trainer._start_after_batches_in_epoch_completed:
        return False
    tracker = trainer._metric_tracker
    # Without validation data, `best_epoch` is None and the best weights are the last ones.
    return tracker.is_best_so_far() and tracker.best_epoch in (None, epochs - 1)


def _save_best_weights(trainer: Any) -> None:
    average = trainer._moving_average
    if average is not None:
        average.assign_average_value()
    trainer._save_model_state(trainer._best_model_filename)
    if average is not None:
        average.restore()


@after_import("allennlp.commands.train")
def lock_runs(train: Module) -> None:
    """
    Symptom: two `allennlp train --recover` in one folder write the same files, and `--force`
    removes the folder of a running training. Temporary files of killed trainings, as large as the
    weights, are never removed. After an error in the data, the same command recommends `--recover`,
    although no checkpoint exists. Cause: nothing locks the folder of a run, or looks for its
    checkpoints.
    """

    @replaces(train, "train_model")
    def train_model(
        original: Any,
        params: Any,
        serialization_dir: Any,
        recover: bool = False,
        force: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        folder = Path(serialization_dir)
        if force and not recover and folder.exists():
            with locked(folder):
                shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            if recover:
                remove_leftovers(folder)
            elif any(folder.iterdir()):
                _refuse_existing(folder)
            # With `force` alone, the folder has been removed. With `recover` as well, AllenNLP
            # raises an error.
            return original(params, serialization_dir, recover, force and recover, *args, **kwargs)


def _refuse_existing(folder: Path) -> None:
    from allennlp.common.checks import ConfigurationError

    if _checkpoints_in(folder):
        content = "a checkpoint: --recover continues from it"
    else:
        content = "files but no checkpoint to recover"
    raise ConfigurationError(
        f"expected an empty folder, got {content}; "
        f"--force removes the folder and starts again: {folder}"
    )


def _checkpoints_in(folder: Path) -> list[str]:
    """The names of the files with the weights of epochs."""
    return sorted(file.name for file in folder.glob("model_state_*.th"))


@after_import("allennlp.nn.util")
def read_epochs(util: Module) -> None:
    """
    Symptom: `Missing keys` for the weights of an epoch, or for a mean of several, if a checkpointer
    writes those that do not change only once; `No such file or directory: best.th` for a run
    without a finished epoch. Cause: `read_state_dict` reads one file.
    """

    @replaces(util, "read_state_dict")
    def read_state_dict(original: Any, path: str | PathLike[str], *args: Any, **kwargs: Any) -> Any:
        file = Path(path)
        if not file.exists() and file.parent.is_dir():
            hint = "no epoch has ended"
            if epochs := _checkpoints_in(file.parent):
                hint = f"or use --weights-file with one of {', '.join(epochs)}"
            raise FileNotFoundError(
                f"expected the weights of a finished training: {file} "
                f"(continue with --recover; {hint})"
            )
        state = original(path, *args, **kwargs)
        if file.name in ("best.th", "weights.th"):
            return state
        for shared in _shared_weights(file.parent):
            state = {**original(shared, *args, **kwargs), **state}
        return state


def _shared_weights(folder: Path) -> list[Path]:
    files = [folder / name for name in SHARED_WEIGHTS]
    return [file for file in files if file.exists()]


@after_import("allennlp.data.vocabulary")
def name_damaged_vocabularies(vocabulary: Module) -> None:
    """
    Symptom: a damaged file in the vocabulary of an archive raises `OOV token not found!`, without
    its name. Cause: `set_from_file` does not name the file.
    """

    @replaces(vocabulary.Vocabulary, "set_from_file")
    def set_from_file(original: Any, self: Any, filename: str, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, filename, *args, **kwargs)
        except (AssertionError, ValueError) as error:
            from allennlp_today.config_error import FileContentError

            raise FileContentError(f"expected a vocabulary ({error}): {filename}") from None


@after_import("allennlp.models.archival")
def write_archives_whole(archival: Module) -> None:
    """
    Symptom: a training that is killed at its end leaves a truncated archive. An archive of an epoch
    lacks the weights that a checkpointer writes only once. Cause: `archive_model` writes in place,
    and only one file of weights.
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
        if path.is_dir():
            path /= "model.tar.gz"
        with atomic_file(path) as temporary, TemporaryDirectory() as folder:
            if weights != "best.th" and _shared_weights(Path(serialization_dir)):
                import torch
                from allennlp.nn.util import read_state_dict

                whole = Path(folder, "weights.th")
                torch.save(read_state_dict(Path(serialization_dir, weights)), whole)
                weights = str(whole)
            original(serialization_dir, weights, temporary, include_in_archive)
        return str(path)


@after_import("allennlp.training.gradient_descent_trainer")
def end_recovered_runs_that_had_ended(gradient_descent_trainer: Module) -> None:
    """
    Symptom: after a kill when the patience has run out, `--recover` trains more epochs, and the
    score may differ. Cause: the trainer checks whether to stop only after a further epoch.
    """

    @replaces(gradient_descent_trainer.GradientDescentTrainer, "_maybe_restore_checkpoint")
    def restore(original: Any, self: Any) -> None:
        original(self)
        epochs = self._start_after_epochs_completed
        is_end_of_epoch = self._start_after_batches_in_epoch_completed == 0
        if epochs and is_end_of_epoch and self._metric_tracker.should_stop_early():
            self._num_epochs = epochs


@after_import("allennlp.data.data_loaders.multiprocess_data_loader")
def lock_in_context_of_workers(multiprocess_data_loader: Module) -> None:
    """
    Symptom: a data loader with `num_workers: 1` and `start_method: "spawn"` raises
    `RuntimeError: A SemLock created in a fork context is being shared with a process in a spawn
    context`.
    Cause: the lock of the progress bar comes from the default context, which Python checks since
    3.11.
    """
    for name in ("_start_instance_workers", "_start_batch_workers"):

        @replaces(multiprocess_data_loader.MultiProcessDataLoader, name)
        def start_workers(original: Any, self: Any, queue: Any, ctx: Any) -> Any:
            with mock.patch.object(multiprocess_data_loader.mp, "RLock", ctx.RLock):
                return original(self, queue, ctx)
