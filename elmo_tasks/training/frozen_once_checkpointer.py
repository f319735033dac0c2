"""Checkpoints without the frozen weights, each written whole or not at all."""

import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import is_distributed
from allennlp.training.checkpointer import Checkpointer
from allennlp.training.trainer import Trainer, TrainerCheckpoint

from elmo_tasks.bilm.lstm.frozen import WeightsState
from elmo_tasks.files.checksums import check_file, checksum_path, file_with_checksum
from elmo_tasks.files.torch_zip import torch_stream

__all__ = ["FrozenOnceCheckpointer"]

logger = logging.getLogger(__name__)

FROZEN_WEIGHTS = "frozen_weights.th"
# The key in the state of the trainer with the names of the omitted parameters.
_LEFT_OUT = "elmo_left_out"


@Checkpointer.register("elmo_frozen_once")
class FrozenOnceCheckpointer(Checkpointer):
    """
    Writes the frozen parameters of a model (the biLM: 375 MB in the paper) once a run, to `frozen_weights.th`, and
    omits them from the checkpoint of every epoch. `best.th` and the archive stay whole. A run that is killed while it
    writes a checkpoint leaves no half of one, and resumes from the previous one. Every file has its SHA-256 next to it,
    which is compared when a run is recovered.

    Registered as a `Checkpointer` with name "elmo_frozen_once". Its parameters are those of `Checkpointer`; in
    distributed training, where AllenNLP's refuses `save_every_num_seconds`, that has no effect.
    """

    def __init__(
        self,
        serialization_dir: str | os.PathLike[str],
        save_every_num_seconds: Optional[float] = None,
        **kwargs: Any,
    ) -> None:
        if is_distributed() and save_every_num_seconds is not None:
            logger.info("checkpoints are not written by the clock in distributed training")
            save_every_num_seconds = None
        # By name, from the config: whatever else `Checkpointer` takes.
        super().__init__(serialization_dir, save_every_num_seconds=save_every_num_seconds, **kwargs)

    # The parameters in the file by name: one that was changed since stays in the checkpoint.
    _stored: dict[str, WeightsState] | None = None

    @property
    def _frozen_path(self) -> str:
        return os.path.join(self._serialization_dir, FROZEN_WEIGHTS)

    def maybe_save_checkpoint(
        self, trainer: Trainer, num_epochs_completed: int, num_batches_in_epoch_completed: int
    ) -> bool:
        """
        Saves a checkpoint if one is due. Always returns `False`, so that the trainer does not copy the checkpoint to
        `best.th`, as if it were the whole model, but writes that itself.
        """
        super().maybe_save_checkpoint(trainer, num_epochs_completed, num_batches_in_epoch_completed)
        return False

    def save_checkpoint(self, trainer: Trainer) -> None:
        checkpoint = trainer.get_checkpoint_state()
        if checkpoint is not None and self._serialization_dir is not None:
            frozen = {
                name: parameter
                for name, parameter in trainer.model.named_parameters(remove_duplicate=False)
                if not parameter.requires_grad
            }
            if self._stored is None:
                self._stored = self._store(frozen)
            unchanged = {name for name, state in self._stored.items() if name in frozen and state.is_of([frozen[name]])}
            changing = {name: value for name, value in checkpoint.model_state.items() if name not in unchanged}
            checkpoint = TrainerCheckpoint(changing, {**checkpoint.trainer_state, _LEFT_OUT: sorted(unchanged)})
            at = checkpoint.trainer_state["epochs_completed"], checkpoint.trainer_state["batches_in_epoch_completed"]
            # AllenNLP writes a file in place unless it exists: ours are written first. A model state is a checkpoint
            # to it, so that one comes last.
            _save(checkpoint.trainer_state, self._training_state_path(*at))
            _save(checkpoint.model_state, self._model_state_path(*at))
        super().save_checkpoint(SimpleNamespace(get_checkpoint_state=lambda: checkpoint))

    def _store(self, frozen: dict[str, torch.nn.Parameter]) -> dict[str, WeightsState]:
        """Writes the file, or finds out which parameters the file of an interrupted run holds."""
        if not frozen:
            return {}
        if os.path.exists(self._frozen_path):
            on_disk = self._load_frozen()
            same = [n for n, p in frozen.items() if n in on_disk and torch.equal(on_disk[n], p.detach().cpu())]
        else:
            _save({name: parameter.detach() for name, parameter in frozen.items()}, self._frozen_path)
            same = list(frozen)
        return {name: WeightsState([frozen[name]]) for name in same}

    def load_checkpoint(self) -> TrainerCheckpoint | None:
        """
        The latest checkpoint, whole. If its epoch is the best so far, `best.th` is written again: a run that was killed
        after the checkpoint and before `best.th` has an older epoch there.

        # Raises

        `ConfigurationError`
            If a file is damaged, or the file with the frozen weights does not exist.
        """
        for path in self.find_latest_checkpoint() or ():
            _check(path)
        checkpoint = self._with_frozen_weights(super().load_checkpoint())
        if checkpoint is not None:
            self._restore_best(checkpoint)
        return checkpoint

    def whole_weights(self, checkpoint: str) -> dict[str, Any]:
        """
        The weights of a checkpoint, and the frozen ones. The state of the training, which may be damaged, is not read.

        # Parameters

        checkpoint : `str`
            The file of the weights, the first of `find_latest_checkpoint`.

        # Raises

        `ConfigurationError`
            If a file is damaged.
        """
        _check(checkpoint)
        weights: dict[str, Any] = torch.load(checkpoint, map_location="cpu", weights_only=True)
        return {**(self._load_frozen() if os.path.exists(self._frozen_path) else {}), **weights}

    def _with_frozen_weights(self, checkpoint: TrainerCheckpoint | None) -> TrainerCheckpoint | None:
        left_out = None if checkpoint is None else checkpoint.trainer_state.pop(_LEFT_OUT, None)
        if checkpoint is None or not left_out:
            return checkpoint
        if not os.path.exists(self._frozen_path):
            raise ConfigurationError(
                f"the run cannot be recovered: {self._frozen_path} must exist, since the checkpoints do not hold the "
                "frozen weights, but it does not: bring it back, or train from the start with --force"
            )
        frozen = self._load_frozen()
        weights = {**checkpoint.model_state, **{name: frozen[name] for name in left_out}}
        return TrainerCheckpoint(weights, checkpoint.trainer_state)

    def _load_frozen(self) -> dict[str, Any]:
        _check(self._frozen_path)
        weights: dict[str, Any] = torch.load(self._frozen_path, map_location="cpu", weights_only=True)
        return weights

    def _restore_best(self, checkpoint: TrainerCheckpoint) -> None:
        state = checkpoint.trainer_state
        is_end_of_epoch = state["batches_in_epoch_completed"] == 0
        if not is_end_of_epoch or not state.get("metric_tracker", {}).get("is_best_so_far") or not self._is_primary:
            return
        averages = (state.get("moving_average") or {}).get("shadows", {})
        # A parameter with two names has its average under one of them.
        by_place = {checkpoint.model_state[name].data_ptr(): average for name, average in averages.items()}
        weights = {name: by_place.get(value.data_ptr(), value) for name, value in checkpoint.model_state.items()}
        path = os.path.join(self._serialization_dir, "best.th")
        _save(weights, path)
        # AllenNLP has saved this name before it knew that the epoch is the best.
        state["best_model_filename"] = path

    def _remove_checkpoint(self, epochs_completed: int, batches_in_epoch_completed: int) -> None:
        at = epochs_completed, batches_in_epoch_completed
        for path in (self._model_state_path(*at), self._training_state_path(*at)):
            checksum_path(Path(path)).unlink(missing_ok=True)
        super()._remove_checkpoint(*at)


def _save(state: dict[str, Any], path: str) -> None:
    # Only the first process of a run writes.
    with file_with_checksum(Path(path)) as temporary, torch_stream(temporary) as stream:
        torch.save(state, stream)


def _check(path: str) -> None:
    try:
        check_file(Path(path))
    except ValueError as error:
        raise ConfigurationError(
            f"the run cannot be recovered: {error}; or remove this checkpoint, so that the one before is used"
        ) from error
