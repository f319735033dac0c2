from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback

from elmo_tasks.trainer import FrozenOnceCheckpointer

FROZEN_WIDTH = 120
# The model uses its frozen part at two places, like a tagger its biLM, so that part has two names.
FROZEN = {"frozen.weight", "frozen.bias", "second_place.weight", "second_place.bias"}
TRAINED = {"trained.weight", "trained.bias"}


class SmallModel(Model):
    """A large frozen layer below a small trained one."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(Vocabulary())
        torch.manual_seed(seed)
        self.frozen = torch.nn.Linear(FROZEN_WIDTH, FROZEN_WIDTH).requires_grad_(False)
        self.second_place = self.frozen
        self.trained = torch.nn.Linear(FROZEN_WIDTH, 1)

    def forward(  # type: ignore[override]
        self, x: torch.Tensor, y: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        output = self.trained(self.frozen(x).tanh())
        return {"loss": (output - y).square().mean()}


class AfterEpoch(TrainerCallback):
    """
    Applies an action to the trainer after an epoch, before the checkpoint of that epoch is written.
    """

    def __init__(self, epoch: int, action: Callable[[Any], None]) -> None:
        super().__init__("")
        self._epoch = epoch
        self._action = action

    def on_epoch(self, trainer: Any, metrics: dict, epoch: int, **kwargs: Any) -> None:
        if epoch == self._epoch:
            self._action(trainer)


def train(
    folder: Path,
    model: Model,
    n_epochs: int,
    *callbacks: TrainerCallback,
    **checkpoints: Any,
) -> Model:
    """
    Trains; resumes from the last checkpoint if the folder has one, as `allennlp train --recover`
    does. `checkpoints` are options of the checkpointer.
    """
    rows = np.random.default_rng(0).normal(size=(8, FROZEN_WIDTH + 1)).astype("float32")
    instances = [Instance({"x": TensorField(row[:-1]), "y": TensorField(row[-1:])}) for row in rows]

    def loader() -> SimpleDataLoader:
        return SimpleDataLoader(list(instances), batch_size=2, vocab=Vocabulary())

    checkpoints.setdefault("keep_most_recent_by_count", None)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    trainer = GradientDescentTrainer(
        model,
        torch.optim.Adam(parameters, lr=0.01),
        loader(),
        validation_data_loader=loader(),
        num_epochs=n_epochs,
        serialization_dir=str(folder),
        checkpointer=FrozenOnceCheckpointer(str(folder), **checkpoints),
        callbacks=list(callbacks),
        cuda_device=torch.device("cpu"),
    )
    trainer.train()
    return model


def names_in(path: Path) -> set[str]:
    return set(torch.load(path, weights_only=True))


def assert_equal_weights(model: torch.nn.Module, other: torch.nn.Module) -> None:
    torch.testing.assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)


class TestFrozenOnceCheckpointer:
    def test_the_frozen_weights_are_in_a_separate_file(self, tmp_path):
        model = train(tmp_path, SmallModel(), 2)
        assert names_in(tmp_path / "frozen_weights.th") == FROZEN
        frozen_size = 4 * FROZEN_WIDTH * (FROZEN_WIDTH + 1)
        assert frozen_size < (tmp_path / "frozen_weights.th").stat().st_size < 1.2 * frozen_size
        for epoch in (1, 2):
            file = tmp_path / f"model_state_e{epoch}_b0.th"
            assert names_in(file) == TRAINED
            assert file.stat().st_size < 0.2 * frozen_size
        stored = torch.load(tmp_path / "frozen_weights.th", weights_only=True)
        assert torch.equal(stored["frozen.weight"], model.frozen.weight)

    def test_the_best_model_is_whole(self, tmp_path):
        model = train(tmp_path, SmallModel(), 3)
        best = SmallModel(seed=1)
        best.load_state_dict(torch.load(tmp_path / "best.th", weights_only=True), strict=True)
        assert_equal_weights(best, model)
        assert names_in(tmp_path / "best.th") == FROZEN | TRAINED

    @pytest.mark.parametrize("other_seed", [0, 7])
    def test_a_resumed_run_ends_like_an_uninterrupted_one(self, tmp_path, other_seed):
        straight = train(tmp_path / "straight", SmallModel(), 2)
        train(tmp_path / "interrupted", SmallModel(), 1)
        recovered = train(tmp_path / "interrupted", SmallModel(seed=other_seed), 2)
        assert_equal_weights(recovered, straight)
        assert names_in(tmp_path / "interrupted" / "model_state_e2_b0.th") == TRAINED

    def test_unfrozen_weights_are_in_the_checkpoint_before_they_change(self, tmp_path):
        unfreeze = AfterEpoch(1, lambda trainer: trainer.model.frozen.requires_grad_(True))
        train(tmp_path, SmallModel(), 2, unfreeze)
        assert names_in(tmp_path / "model_state_e2_b0.th") == FROZEN | TRAINED

    @pytest.mark.parametrize("n_whole", [0, 1], ids=["in its first file", "in its second file"])
    def test_a_run_killed_in_a_checkpoint_resumes_from_the_previous_one(
        self, tmp_path, monkeypatch, n_whole
    ):
        """The second checkpoint has zero or one complete file out of two."""
        straight = train(tmp_path / "straight", SmallModel(), 3)
        killed = tmp_path / "killed"
        train(killed, SmallModel(), 1)
        save = torch.save
        n_saved = 0

        def interrupt(content: object, file: Any) -> None:
            nonlocal n_saved
            if "_state_" not in Path(file).name:
                save(content, file)
                return
            if n_saved == n_whole:
                Path(file).write_bytes(b"half of a fi")
                raise KeyboardInterrupt
            n_saved += 1
            save(content, file)

        monkeypatch.setattr(torch, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(killed, SmallModel(seed=7), 3)
        monkeypatch.undo()
        assert len(list(killed.glob("*_e2_b0.th"))) == n_whole
        checkpoint = FrozenOnceCheckpointer(str(killed)).load_checkpoint()
        assert checkpoint is not None
        assert checkpoint.trainer_state["epochs_completed"] == 1
        assert_equal_weights(train(killed, SmallModel(seed=7), 3), straight)
        assert not list(killed.glob("_tmp-*"))

    def test_a_run_killed_after_the_frozen_weights_starts_again(self, tmp_path):
        """Without a checkpoint there is nothing to resume from."""
        train(tmp_path, SmallModel(), 1)
        for file in tmp_path.glob("*_state_*"):
            file.unlink()
        assert FrozenOnceCheckpointer(str(tmp_path)).load_checkpoint() is None
        straight = train(tmp_path / "straight", SmallModel(), 2)
        assert_equal_weights(train(tmp_path, SmallModel(), 2), straight)

    def test_old_checkpoints_are_deleted_and_the_frozen_weights_kept(self, tmp_path):
        model = train(tmp_path, SmallModel(), 3, keep_most_recent_by_count=1)
        files = {"best.th", "frozen_weights.th", "model_state_e3_b0.th", "training_state_e3_b0.th"}
        assert {path.name for path in tmp_path.glob("*.th")} == files
        assert_equal_weights(train(tmp_path, SmallModel(seed=7), 3), model)

    def test_checkpoints_within_an_epoch_are_small_too(self, tmp_path):
        train(tmp_path, SmallModel(), 1, save_every_num_batches=1)
        assert names_in(tmp_path / "model_state_e0_b1.th") == TRAINED

    def test_damaged_frozen_weights_are_named(self, tmp_path):
        train(tmp_path, SmallModel(), 1)
        file = tmp_path / "frozen_weights.th"
        file.write_bytes(file.read_bytes()[:-100])
        with pytest.raises(ConfigurationError, match=r"damaged.*frozen_weights\.th"):
            train(tmp_path, SmallModel(), 2)
