"""The random numbers of an interrupted run, which resumes with the same."""

from typing import Any

import torch
from allennlp.training.callbacks import TrainerCallback

__all__ = ["RandomStateCallback"]


@TrainerCallback.register("elmo_random_state")
class RandomStateCallback(TrainerCallback):
    """
    Keeps the state of torch's random generators in each checkpoint, and the scale of automatic mixed precision, so that
    after `--recover` dropout, sampled negatives and the rounding of gradients are those of a run without the
    interruption: AllenNLP keeps only the weights and the optimizer. The data loader has to give the same batches again,
    as `elmo_lm` does. In distributed training the first process alone writes checkpoints, so all processes resume with
    its random numbers, and differ from a run without the interruption.

    Registered as a `TrainerCallback` with name "elmo_random_state".
    """

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        self._scaler: dict[str, Any] | None = None

    def on_start(self, trainer: Any, is_primary: bool = True, **kwargs: Any) -> None:
        """Called when the checkpoint has been loaded."""
        super().on_start(trainer, is_primary, **kwargs)
        if self._scaler and trainer._scaler is not None:
            trainer._scaler.load_state_dict(self._scaler)
            self._scaler = None

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            state["cuda"] = torch.cuda.get_rng_state_all()
        scaler = getattr(self.trainer, "_scaler", None)
        if scaler is not None:
            state["scaler"] = scaler.state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._scaler = state_dict.get("scaler")
        torch.set_rng_state(state_dict["cpu"].cpu())
        if "cuda" in state_dict and torch.cuda.device_count() == len(state_dict["cuda"]):
            torch.cuda.set_rng_state_all([state.cpu() for state in state_dict["cuda"]])
