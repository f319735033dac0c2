"""The states of all random generators, kept in the checkpoints of a training."""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from allennlp.data import DataLoader, TensorDict
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

__all__ = ["RandomStateCallback", "random_states", "set_random_states"]


@TrainerCallback.register("elmo_random_state")
class RandomStateCallback(TrainerCallback):
    """
    Keeps the states of the random generators of Python, NumPy and torch in each checkpoint, so that
    a recovered training reads the same batches, and drops out the same units, as an uninterrupted
    one. It is one of the trainer's default callbacks, and has no effect in distributed training,
    where only one process writes checkpoints.

    A recovered training first reads the data of the completed epochs again, without training,
    because the order of a loader may depend on its earlier orders. Each of these epochs starts with
    the states that it started with in the first run, because the validations between them, which
    are not repeated, have drawn random numbers, too. In one case, the batches still differ: if a
    loader shuffles in the middle of an epoch, and the model also draws from Python's generator.
    """

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        self._starts: list[dict[str, Any]] = []
        self._recovered: dict[str, Any] = {}

    def state_dict(self) -> dict[str, Any]:
        return {"starts": self._starts, "now": random_states()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._recovered = state_dict

    def on_start(
        self,
        trainer: GradientDescentTrainer,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        if trainer._distributed:
            return
        train_epoch = trainer._train_epoch
        # No callback is called at the start of an epoch.
        trainer._train_epoch = lambda epoch: self._train_epoch(trainer, train_epoch, epoch)

    def _train_epoch(self, trainer: GradientDescentTrainer, train_epoch: Any, epoch: int) -> Any:
        # Checkpoints of earlier releases have no starts.
        starts = self._recovered.get("starts", [])
        n_batches = trainer._start_after_batches_in_epoch_completed
        is_resumed = "starts" in self._recovered and epoch == trainer._start_after_epochs_completed
        if epoch < len(starts):
            set_random_states(starts[epoch])
        elif is_resumed:
            set_random_states(self._recovered["now"])
        self._starts.append(random_states())
        loader = trainer.data_loader
        if is_resumed and n_batches:
            n_batches *= trainer._num_gradient_accumulation_steps
            trainer.data_loader = _ResumedLoader(loader, n_batches, self._recovered["now"])
        try:
            return train_epoch(epoch)
        finally:
            trainer.data_loader = loader


class _ResumedLoader:
    """The batches of a loader, with `states` set after the first `n_batches`, which are skipped."""

    def __init__(self, loader: DataLoader, n_batches: int, states: dict[str, Any]) -> None:
        self._loader = loader
        self._n_batches = n_batches
        self._states = states

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[TensorDict]:
        batches = iter(self._loader)
        yield from islice(batches, self._n_batches)
        set_random_states(self._states)
        yield from batches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def random_states() -> dict[str, Any]:
    """
    The states of the generators of Python, NumPy and torch, as numbers and tensors, which
    `torch.load(weights_only=True)` reads.
    """
    version, numbers, next_gauss = random.getstate()
    python_keys = np.array(numbers, dtype=np.uint32)
    numpy_state: Any = np.random.get_state()
    name, keys, position, has_gauss, cached_gauss = numpy_state
    states = {
        "python": (version, _as_tensor(python_keys), next_gauss),
        "numpy": (name, _as_tensor(keys), position, has_gauss, cached_gauss),
        "cpu": torch.get_rng_state(),
    }
    if torch.cuda.is_initialized():
        for number in range(torch.cuda.device_count()):
            states[f"cuda:{number}"] = torch.cuda.get_rng_state(number)
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Sets what `random_states` has returned, except for GPUs that this machine lacks."""
    version, numbers, next_gauss = states["python"]
    python_keys = tuple(_as_array(numbers).tolist())
    random.setstate((version, python_keys, next_gauss))
    name, keys, position, has_gauss, cached_gauss = states["numpy"]
    np.random.set_state((name, _as_array(keys), position, has_gauss, cached_gauss))
    torch.set_rng_state(states["cpu"])
    for number in range(torch.cuda.device_count()):
        if f"cuda:{number}" in states:
            torch.cuda.set_rng_state(states[f"cuda:{number}"], number)


def _as_tensor(numbers: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(numbers.view(np.int32).copy())


def _as_array(numbers: torch.Tensor) -> np.ndarray:
    return numbers.numpy().view(np.uint32)
