"""A training that is stopped and recovered draws the same random numbers as one that is not."""

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allennlp.data import DataLoader, Instance, TensorDict, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader, SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.data.samplers import BucketBatchSampler
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer

from elmo_tasks.trainer import FrozenOnceCheckpointer, RandomStateCallback
from elmo_tasks.trainer.random_states import random_states, set_random_states

N_INSTANCES = 12


class Noisy(Model):
    """A sum of the inputs with weights, and noise from two or three sources while it is trained."""

    def __init__(self, *, draws_from_python: bool) -> None:
        super().__init__(Vocabulary())
        self._draws_from_python = draws_from_python
        self.weight = torch.nn.Parameter(torch.zeros(3))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:  # type: ignore[override]
        if self.training:
            x = torch.nn.functional.dropout(x, 0.5) + np.random.normal()
            if self._draws_from_python:
                x = x + random.gauss(0.0, 1.0)
        return {"loss": (x @ self.weight - 1.0).square().mean()}


class Drawing(SimpleDataLoader):
    """Shuffles its instances at the start, and draws noise when it is asked for a batch."""

    def __iter__(self) -> Iterator[TensorDict]:
        for batch in super().__iter__():
            noise = random.random() + np.random.random() + torch.rand(()).item()
            yield {"x": batch["x"] + noise}


class Rows:
    """Stands for a dataset reader."""

    def read(self, path: str) -> list[Instance]:
        rows = np.random.default_rng(len(path)).normal(size=(N_INSTANCES, 3)).astype("float32")
        return [Instance({"x": TensorField(row)}) for row in rows]

    def apply_token_indexers(self, instance: Instance) -> None:
        pass


def simple_loader(path: str) -> DataLoader:
    return Drawing(Rows().read(path), batch_size=2, shuffle=True, vocab=Vocabulary())


def bucket_loader(path: str) -> DataLoader:
    """As in our configs, where validation shuffles batches, too."""
    reader: Any = Rows()
    sampler = BucketBatchSampler(batch_size=2, sorting_keys=["x"])
    loader = MultiProcessDataLoader(reader, path, batch_sampler=sampler, quiet=True)
    loader.index_with(Vocabulary())
    return loader


def continuing_loader(path: str) -> DataLoader:
    """An epoch ends in the middle of the data. The next one continues there, and shuffles later."""
    reader: Any = Rows()
    options = {"batch_size": 2, "shuffle": True, "batches_per_epoch": 4, "quiet": True}
    loader = MultiProcessDataLoader(reader, path, **options)
    loader.index_with(Vocabulary())
    return loader


LOADERS = [simple_loader, bucket_loader, continuing_loader]


def train(folder: Path, make_loader: Any, n_steps: int = 1) -> torch.Tensor:
    """
    The weights after the last epoch. Starts as `allennlp train --recover` does: from the same
    seeds, and the last checkpoint in the folder.
    """
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    model = Noisy(draws_from_python=make_loader is not continuing_loader)
    checkpointer = FrozenOnceCheckpointer(
        str(folder), save_every_num_batches=1, keep_most_recent_by_count=None
    )
    trainer = GradientDescentTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.05),
        make_loader("train"),
        validation_data_loader=bucket_loader("dev"),
        num_epochs=4,
        serialization_dir=str(folder),
        checkpointer=checkpointer,
        callbacks=[RandomStateCallback(str(folder))],
        num_gradient_accumulation_steps=n_steps,
        cuda_device=torch.device("cpu"),
    )
    trainer.train()
    state: dict[str, torch.Tensor] = torch.load(folder / "model_state_e4_b0.th", weights_only=True)
    return state["weight"]


def stop_at(folder: Path, epoch: int, batch: int) -> None:
    """Removes what a training wrote after a checkpoint."""
    for file in folder.glob("*_state_*.th"):
        epoch_of_file, batch_of_file = re.findall(r"\d+", file.name)
        if (int(epoch_of_file), int(batch_of_file)) > (epoch, batch):
            file.unlink()
    assert (folder / f"model_state_e{epoch}_b{batch}.th").exists()


@pytest.mark.parametrize("make_loader", LOADERS, ids=lambda loader: loader.__name__)
@pytest.mark.parametrize("n_steps", [1, 2])
def test_a_recovered_training_has_the_same_weights(tmp_path, make_loader, n_steps):
    straight = train(tmp_path / "straight", make_loader, n_steps)
    for epoch, batch in ((1, 0), (2, 0), (1, 1), (2, 2)):
        recovered = tmp_path / f"recovered{epoch}-{batch}"
        shutil.copytree(tmp_path / "straight", recovered)
        stop_at(recovered, epoch, batch)
        assert torch.equal(train(recovered, make_loader, n_steps), straight), (epoch, batch)


def test_a_training_that_is_stopped_twice_has_the_same_weights(tmp_path):
    straight = train(tmp_path / "run", simple_loader)
    for epoch, batch in ((1, 0), (2, 2)):
        stop_at(tmp_path / "run", epoch, batch)
        recovered = train(tmp_path / "run", simple_loader)
    assert torch.equal(recovered, straight)


def test_states_are_tensors_and_numbers_of_all_sources(tmp_path):

    def draw() -> list[float]:
        return [random.gauss(0.0, 1.0), np.random.normal(), torch.rand(()).item()]

    draw()
    torch.save(random_states(), tmp_path / "states.th")
    drawn = draw()
    set_random_states(torch.load(tmp_path / "states.th", weights_only=True))
    assert draw() == drawn
