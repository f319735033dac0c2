"""Checkpoints without the frozen weights, written atomically."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import torch
from allennlp.common.util import is_distributed
from allennlp.training.checkpointer import Checkpointer
from allennlp.training.trainer import Trainer, TrainerCheckpoint

from allennlp_today.repairs.recovery import check_whole
from allennlp_today.repairs.training import SHARED_WEIGHTS
from elmo_tasks.files.atomic_files import atomic_file

__all__ = ["FrozenOnceCheckpointer"]

_FROZEN_WEIGHTS = "frozen_weights.th"
# `allennlp_today` adds them when the weights of an epoch are read or archived.
SHARED_WEIGHTS.append(_FROZEN_WEIGHTS)
# The key in the state of the trainer with the names of the omitted parameters.
_LEFT_OUT = "elmo_left_out"


@Checkpointer.register("elmo_frozen_once")
class FrozenOnceCheckpointer(Checkpointer):
    """
    Writes the frozen parameters of a model (the biLM: 375 MB in the paper) once per run, to
    `frozen_weights.th`, and omits them from the checkpoint of every epoch. `best.th` and the
    archive stay complete, and `allennlp_today` adds them when the weights of an epoch are read or
    archived. If a run is killed while it writes a checkpoint, it leaves no partial checkpoint and
    resumes from the previous one.

    In distributed training, `save_every_num_seconds` has no effect; AllenNLP's own checkpointer
    rejects it.
    """

    # The names in the file. A parameter that is no longer frozen stays in the checkpoint.
    _stored: frozenset[str] | None = None

    def __init__(
        self,
        serialization_dir: str | os.PathLike[str],
        save_every_num_seconds: Optional[float] = None,
        **kwargs: Any,
    ) -> None:
        seconds = None if is_distributed() else save_every_num_seconds
        super().__init__(serialization_dir, save_every_num_seconds=seconds, **kwargs)

    @property
    def _frozen_path(self) -> str:
        return os.path.join(self._serialization_dir, _FROZEN_WEIGHTS)

    def maybe_save_checkpoint(
        self, trainer: Trainer, num_epochs_completed: int, num_batches_in_epoch_completed: int
    ) -> bool:
        """
        Saves a checkpoint if one is due. Always returns `False`, so the trainer writes the whole
        model to `best.th` instead of copying the checkpoint.
        """
        super().maybe_save_checkpoint(trainer, num_epochs_completed, num_batches_in_epoch_completed)
        return False

    def save_checkpoint(self, trainer: Trainer) -> None:
        checkpoint = trainer.get_checkpoint_state()
        if checkpoint is not None and self._serialization_dir is not None:
            checkpoint = self._without_frozen(checkpoint, trainer.model)
            n_epochs = checkpoint.trainer_state["epochs_completed"]
            n_batches = checkpoint.trainer_state["batches_in_epoch_completed"]
            # AllenNLP writes a file in place unless it exists, so ours are written first. The model
            # state comes last, because AllenNLP finds checkpoints by it.
            _save(checkpoint.trainer_state, self._training_state_path(n_epochs, n_batches))
            _save(checkpoint.model_state, self._model_state_path(n_epochs, n_batches))
        super().save_checkpoint(SimpleNamespace(get_checkpoint_state=lambda: checkpoint))

    def _without_frozen(
        self, checkpoint: TrainerCheckpoint, model: torch.nn.Module
    ) -> TrainerCheckpoint:
        """The checkpoint without the frozen parameters, which are written if they are not yet."""
        frozen = {}
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if not parameter.requires_grad:
                frozen[name] = parameter.detach()
        if self._stored is None:
            self._stored = frozenset(frozen)
            if frozen:
                _save(frozen, self._frozen_path)
        left_out = self._stored & frozen.keys()
        model_state = {}
        for name, value in checkpoint.model_state.items():
            if name not in left_out:
                model_state[name] = value
        trainer_state = {**checkpoint.trainer_state, _LEFT_OUT: sorted(left_out)}
        return TrainerCheckpoint(model_state, trainer_state)

    def load_checkpoint(self) -> TrainerCheckpoint | None:
        """The latest checkpoint, including the frozen parameters."""
        checkpoint = super().load_checkpoint()
        if checkpoint is None:
            return None
        left_out = checkpoint.trainer_state.pop(_LEFT_OUT, None)
        if not left_out:
            return checkpoint
        check_whole(Path(self._frozen_path))
        frozen = torch.load(self._frozen_path, map_location="cpu", weights_only=True)
        self._stored = frozenset(frozen)
        model_state = dict(checkpoint.model_state)
        for name in left_out:
            model_state[name] = frozen[name]
        return TrainerCheckpoint(model_state, checkpoint.trainer_state)


def _save(state: dict[str, Any], path: str) -> None:
    with atomic_file(Path(path)) as temporary:
        torch.save(state, temporary)
