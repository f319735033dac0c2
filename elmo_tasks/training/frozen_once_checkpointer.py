"""Checkpoints that do not repeat what never changes, and are whole or not there."""

import os
from types import SimpleNamespace
from typing import Any

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.training.checkpointer import Checkpointer
from allennlp.training.trainer import Trainer, TrainerCheckpoint

from elmo_tasks.bilm.weights_state import WeightsState

__all__ = ["FrozenOnceCheckpointer"]

FROZEN_WEIGHTS = "frozen_weights.th"
# Where the state of the trainer says which parameters its checkpoint is without.
_LEFT_OUT = "elmo_left_out"


@Checkpointer.register("elmo_frozen_once")
class FrozenOnceCheckpointer(Checkpointer):
    """
    Writes the frozen parameters of a model (the biLM: 375 MB in the paper) once a run, to `frozen_weights.th`, and
    leaves them out of the checkpoint of every epoch. `best.th` and the archive stay whole. A run that is killed while
    it writes a checkpoint leaves no half of one, and goes on from the one before.

    Registered as a `Checkpointer` with name "elmo_frozen_once". Its parameters are those of `Checkpointer`.
    """

    # The parameters in the file by name: one that was changed since stays in the checkpoint.
    _stored: dict[str, WeightsState] | None = None

    @property
    def _frozen_path(self) -> str:
        return os.path.join(self._serialization_dir, FROZEN_WEIGHTS)

    def maybe_save_checkpoint(
        self, trainer: Trainer, num_epochs_completed: int, num_batches_in_epoch_completed: int
    ) -> bool:
        """
        Saves a checkpoint if it is time to. Always returns `False`, by which the trainer knows that it must not take
        the checkpoint for the whole model and copy it to `best.th`, but write that itself.
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
            # AllenNLP writes what is not there yet, in place: we are before it. Where it finds a model state, there is
            # a checkpoint for it, so that one comes last.
            _save(checkpoint.trainer_state, self._training_state_path(*at))
            _save(checkpoint.model_state, self._model_state_path(*at))
        super().save_checkpoint(SimpleNamespace(get_checkpoint_state=lambda: checkpoint))

    def _store(self, frozen: dict[str, torch.nn.Parameter]) -> dict[str, WeightsState]:
        """Writes the file, or finds out which parameters a file from before the run was broken off holds."""
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
        # Raises

        `ConfigurationError`
            If the file with the frozen weights is gone.
        """
        checkpoint = super().load_checkpoint()
        left_out = None if checkpoint is None else checkpoint.trainer_state.pop(_LEFT_OUT, None)
        if checkpoint is None or not left_out:
            return checkpoint
        if not os.path.exists(self._frozen_path):
            raise ConfigurationError(
                f"the run cannot be recovered: {self._frozen_path} must be there, since the checkpoints do not "
                "hold the frozen weights, but it is not; bring it back, or train anew with --force"
            )
        frozen = self._load_frozen()
        weights = {**checkpoint.model_state, **{name: frozen[name] for name in left_out}}
        return TrainerCheckpoint(weights, checkpoint.trainer_state)

    def _load_frozen(self) -> dict[str, Any]:
        weights: dict[str, Any] = torch.load(self._frozen_path, map_location="cpu", weights_only=True)
        return weights


def _save(state: dict[str, Any], path: str) -> None:
    """A run that is killed while it writes leaves no half file under the name."""
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)
