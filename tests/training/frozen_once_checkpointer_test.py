import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.models import Model
from allennlp.training import Checkpointer, GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback

from elmo_tasks.training import FrozenOnceCheckpointer, RecoverableMovingAverage
from elmo_tasks.training.frozen_once_checkpointer import FROZEN_WEIGHTS

FROZEN_WIDTH = 120
# The model has its frozen part at two places, as a tagger has its biLM: it goes by two names.
FROZEN = {"frozen.weight", "frozen.bias", "second_place.weight", "second_place.bias"}
TRAINED = {"trained.weight", "trained.bias"}


class SmallModel(Model):
    """A large frozen layer below a small trained one."""

    def __init__(self, seed: int = 0, is_frozen: bool = True) -> None:
        super().__init__(Vocabulary())
        torch.manual_seed(seed)
        self.frozen = torch.nn.Linear(FROZEN_WIDTH, FROZEN_WIDTH).requires_grad_(not is_frozen)
        self.second_place = self.frozen
        self.trained = torch.nn.Linear(FROZEN_WIDTH, 1)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:  # type: ignore[override]
        output = self.trained(self.frozen(x).tanh())
        return {"loss": (output - y).square().mean()}


class AfterEpoch(TrainerCallback):
    """Does something to the trainer after one of its epochs, before the checkpoint of the epoch is written."""

    def __init__(self, epoch: int, action: Callable[[Any], None]) -> None:
        super().__init__("")
        self._epoch, self._action = epoch, action

    def on_epoch(self, trainer: Any, metrics: dict, epoch: int, **kwargs: Any) -> None:
        if epoch == self._epoch:
            self._action(trainer)


def train(folder: Path, model: Model, n_epochs: int, *callbacks: TrainerCallback, **options: Any) -> Model:
    """Trains; resumes from the last checkpoint if the folder has one, as `allennlp train --recover` does."""
    average = None
    if options.pop("with_average", False):
        average = RecoverableMovingAverage(list(model.named_parameters()), decay=0.5)
    random = np.random.default_rng(0)
    rows = random.normal(size=(8, FROZEN_WIDTH + 1)).astype("float32")
    instances = [Instance({"x": TensorField(row[:-1]), "y": TensorField(row[-1:])}) for row in rows]
    loaders = [SimpleDataLoader(instances, batch_size=4, shuffle=False, vocab=Vocabulary()) for _ in range(2)]
    trainer = GradientDescentTrainer(
        model,
        torch.optim.Adam([parameter for parameter in model.parameters() if parameter.requires_grad], lr=0.01),
        loaders[0],
        validation_data_loader=loaders[1],
        num_epochs=n_epochs,
        serialization_dir=str(folder),
        checkpointer=FrozenOnceCheckpointer(str(folder), **{"keep_most_recent_by_count": None, **options}),
        callbacks=list(callbacks),
        moving_average=average,
        cuda_device=torch.device("cpu"),
    )
    trainer.train()
    return model


def names_in(path: Path) -> set[str]:
    return set(torch.load(path, weights_only=True))


def assert_equal_weights(model: torch.nn.Module, other: torch.nn.Module) -> None:
    state, other_state = model.state_dict(), other.state_dict()
    assert set(state) == set(other_state)
    for name, value in state.items():
        assert torch.equal(value, other_state[name]), name


class TestFrozenOnceCheckpointer:
    def test_the_frozen_weights_are_in_a_file_of_their_own(self, tmp_path):
        """Oracle: the names in each file, and its size: the frozen layer once, though it has two names."""
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

    def test_they_are_written_once(self, tmp_path):
        """Oracle: the inode and the time of the file, after more epochs of the run and after a run that resumes."""
        file = tmp_path / "frozen_weights.th"
        written: list[tuple[int, int]] = []

        def note(trainer: object) -> None:
            written.append((file.stat().st_ino, file.stat().st_mtime_ns))

        train(tmp_path, SmallModel(), 4, AfterEpoch(1, note), AfterEpoch(3, note))
        train(tmp_path, SmallModel(), 6, AfterEpoch(5, note))
        note(None)
        assert len(written) == 4
        assert len(set(written)) == 1

    def test_the_best_model_is_whole(self, tmp_path):
        """Oracle: AllenNLP's own checkpointer, and a strict load into a model with other weights."""
        model = train(tmp_path, SmallModel(), 3)
        best = SmallModel(seed=1)
        best.load_state_dict(torch.load(tmp_path / "best.th", weights_only=True), strict=True)
        assert_equal_weights(best, model)
        assert names_in(tmp_path / "best.th") == FROZEN | TRAINED

    def test_the_best_model_need_not_be_the_last(self, tmp_path):
        """Oracle: the weights after the second epoch; in the third the model is spoilt."""
        noted: dict[str, torch.Tensor] = {}

        class Spoil(TrainerCallback):
            def on_batch(self, trainer: Any, *args: Any, **kwargs: Any) -> None:
                if trainer._epochs_completed == 2:
                    trainer.model.trained.bias.data.fill_(100.0)

        def note(trainer: Any) -> None:
            noted.update({name: value.clone() for name, value in trainer.model.state_dict().items()})

        model = train(tmp_path, SmallModel(), 3, AfterEpoch(1, note), Spoil(""))
        best = torch.load(tmp_path / "best.th", weights_only=True)
        assert torch.load(tmp_path / "model_state_e3_b0.th", weights_only=True)["trained.bias"] > 50
        assert set(best) == set(noted)
        assert all(torch.equal(best[name], noted[name]) for name in noted)
        assert all(torch.equal(value, noted[name]) for name, value in model.state_dict().items())

    @pytest.mark.parametrize("other_seed", [0, 7])
    def test_a_resumed_run_ends_as_one_that_was_not_interrupted(self, tmp_path, other_seed):
        """Oracle: two epochs without a break; the frozen weights come from the file, whatever the new model has."""
        straight = train(tmp_path / "straight", SmallModel(), 2)
        train(tmp_path / "interrupted", SmallModel(), 1)
        recovered = train(tmp_path / "interrupted", SmallModel(seed=other_seed), 2)
        assert_equal_weights(recovered, straight)
        assert names_in(tmp_path / "interrupted" / "model_state_e2_b0.th") == TRAINED

    def test_a_run_without_its_frozen_weights_cannot_resume(self, tmp_path):
        """Oracle: the message names the file."""
        train(tmp_path, SmallModel(), 1)
        (tmp_path / "frozen_weights.th").unlink()
        with pytest.raises(ConfigurationError, match=r"frozen_weights\.th must exist"):
            train(tmp_path, SmallModel(), 2)

    def test_the_state_to_resume_from_is_whole(self, tmp_path):
        """Oracle: the state of the model; and of the trainer, as AllenNLP's own `Checkpointer` reads it."""
        model = train(tmp_path, SmallModel(), 2)
        ours = FrozenOnceCheckpointer(str(tmp_path)).load_checkpoint()
        assert ours is not None
        theirs = Checkpointer(str(tmp_path)).load_checkpoint()
        assert theirs is not None
        assert set(ours.model_state) == set(model.state_dict())
        assert set(theirs.model_state) == TRAINED
        assert ours.trainer_state["epochs_completed"] == theirs.trainer_state["epochs_completed"] == 2
        for name, value in model.state_dict().items():
            assert torch.equal(ours.model_state[name], value), name

    @pytest.mark.parametrize("unfreeze", [True, False], ids=["unfrozen", "changed"])
    def test_weights_that_change_in_the_middle_go_into_the_checkpoint(self, tmp_path, unfreeze):
        """Oracle: the names in the files from then on; the state that a run resumes from has the new value."""

        def change(trainer: Any) -> None:
            if unfreeze:
                trainer.model.frozen.bias.requires_grad_(True)
            with torch.no_grad():
                trainer.model.frozen.bias.add_(1.0)

        model = train(tmp_path, SmallModel(), 3, AfterEpoch(1, change))
        both_names = {"frozen.bias", "second_place.bias"}
        assert names_in(tmp_path / "model_state_e1_b0.th") == TRAINED
        assert names_in(tmp_path / "model_state_e2_b0.th") == TRAINED | both_names
        assert names_in(tmp_path / "model_state_e3_b0.th") == TRAINED | both_names
        # The file still has the old one.
        stored = torch.load(tmp_path / "frozen_weights.th", weights_only=True)
        assert torch.equal(stored["frozen.bias"] + 1.0, model.frozen.bias)
        assert_equal_weights(train(tmp_path, SmallModel(seed=7), 3), model)
        # A resumed run knows that the file differs from the model.
        recovered = train(tmp_path, SmallModel(seed=7), 4)
        assert names_in(tmp_path / "model_state_e4_b0.th") == TRAINED | both_names
        assert torch.equal(recovered.frozen.bias, model.frozen.bias)

    def test_unfrozen_weights_go_into_the_checkpoint_before_they_have_changed(self, tmp_path):
        """Oracle: the names in the file."""
        train(tmp_path, SmallModel(), 2, AfterEpoch(1, lambda trainer: trainer.model.frozen.requires_grad_(True)))
        assert names_in(tmp_path / "model_state_e2_b0.th") == FROZEN | TRAINED

    def test_weights_frozen_in_the_middle_stay_in_the_checkpoint(self, tmp_path):
        """Oracle: the names in the files; the state that a run resumes from."""
        freeze = AfterEpoch(1, lambda trainer: trainer.model.trained.requires_grad_(False))
        model = train(tmp_path, SmallModel(), 2, freeze)
        assert names_in(tmp_path / "frozen_weights.th") == FROZEN
        assert names_in(tmp_path / "model_state_e2_b0.th") == TRAINED
        assert_equal_weights(train(tmp_path, SmallModel(seed=7), 2), model)

    def test_a_model_without_frozen_weights_has_no_such_file(self, tmp_path):
        """Oracle: the names of files, and in the checkpoint."""
        model = train(tmp_path, SmallModel(is_frozen=False), 1)
        assert not [name for name in os.listdir(tmp_path) if name.startswith("frozen")]
        assert names_in(tmp_path / "model_state_e1_b0.th") == FROZEN | TRAINED
        assert_equal_weights(train(tmp_path, SmallModel(seed=7, is_frozen=False), 1), model)

    def test_a_half_written_file_does_no_harm(self, tmp_path):
        """Oracle: the file of a run that was not killed; the half file is deleted."""
        (tmp_path / "_tmp-frozen_weights.th").write_bytes(b"half of a fi")
        model = train(tmp_path, SmallModel(), 1)
        assert names_in(tmp_path / "frozen_weights.th") == FROZEN
        assert not (tmp_path / "_tmp-frozen_weights.th").exists()
        assert_equal_weights(train(tmp_path, SmallModel(seed=7), 1), model)

    def test_a_run_killed_while_it_writes_leaves_no_half_file(self, tmp_path, monkeypatch):
        """Oracle: no file under the name when `torch.save` is interrupted; and that a new run succeeds."""
        save = torch.save

        def interrupt(content: object, file: BinaryIO) -> None:
            file.write(b"half of a fi")
            raise KeyboardInterrupt

        monkeypatch.setattr(torch, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, SmallModel(), 1)
        assert not (tmp_path / "frozen_weights.th").exists()
        monkeypatch.setattr(torch, "save", save)
        model = train(tmp_path, SmallModel(), 1)
        assert_equal_weights(train(tmp_path, SmallModel(seed=7), 1), model)

    @pytest.mark.parametrize("n_whole", [0, 1], ids=["in its first file", "in its second file"])
    def test_a_run_killed_in_a_checkpoint_resumes_from_the_previous_one(self, tmp_path, monkeypatch, n_whole):
        """Oracle: a run that was not killed; the second checkpoint has none, or one whole, of its two files."""
        straight = train(tmp_path / "straight", SmallModel(), 3)
        train(tmp_path / "killed", SmallModel(), 1)
        save = torch.save
        n_saved = 0

        def interrupt(content: object, file: BinaryIO) -> None:
            nonlocal n_saved
            if "_state_" not in Path(file.name).name:
                save(content, file)
                return
            if n_saved == n_whole:
                file.write(b"half of a fi")
                raise KeyboardInterrupt
            n_saved += 1
            save(content, file)

        monkeypatch.setattr(torch, "save", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "killed", SmallModel(seed=7), 3)
        monkeypatch.undo()
        assert len(list((tmp_path / "killed").glob("*_e2_b0.th"))) == n_whole
        checkpoint = FrozenOnceCheckpointer(str(tmp_path / "killed")).load_checkpoint()
        assert checkpoint is not None and checkpoint.trainer_state["epochs_completed"] == 1
        assert_equal_weights(train(tmp_path / "killed", SmallModel(seed=7), 3), straight)
        assert not list((tmp_path / "killed").glob("_tmp-*"))

    def test_a_run_killed_after_the_frozen_weights_starts_again(self, tmp_path):
        """Oracle: a run that was not killed: without a checkpoint there is nothing to resume from."""
        train(tmp_path, SmallModel(), 1)
        for file in tmp_path.glob("*_state_*"):
            file.unlink()
        assert FrozenOnceCheckpointer(str(tmp_path)).load_checkpoint() is None
        assert_equal_weights(train(tmp_path, SmallModel(), 2), train(tmp_path / "straight", SmallModel(), 2))

    def test_another_model_in_the_folder_of_a_killed_run_keeps_its_own_weights(self, tmp_path):
        """Oracle: by hand: weights that differ from the file are in the checkpoint."""
        train(tmp_path, SmallModel(), 1)
        for file in tmp_path.glob("*_state_*"):
            file.unlink()
        model = train(tmp_path, SmallModel(seed=7), 1)
        assert names_in(tmp_path / "model_state_e1_b0.th") == FROZEN | TRAINED
        assert_equal_weights(train(tmp_path, SmallModel(seed=8), 1), model)

    @pytest.mark.parametrize("with_average", [False, True], ids=["weights", "averages"])
    def test_a_run_killed_before_its_best_weights_has_them_after_it_is_resumed(
        self, tmp_path, monkeypatch, with_average
    ):
        """Oracle: best.th of a run that was not killed; the checkpoint of the second, best epoch was the last file."""
        options = {"with_average": with_average}
        whole = tmp_path / "whole"
        train(whole, SmallModel(), 2, **options)
        expected = torch.load(whole / "best.th", weights_only=True)
        n_saved: list[str] = []

        def save_model_state(self: Any, path: str) -> None:
            n_saved.append(path)
            if len(n_saved) == 2:
                raise KeyboardInterrupt
            original(self, path)

        original = GradientDescentTrainer._save_model_state
        monkeypatch.setattr(GradientDescentTrainer, "_save_model_state", save_model_state)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "killed", SmallModel(), 2, **options)
        monkeypatch.undo()
        older = torch.load(tmp_path / "killed" / "best.th", weights_only=True)
        assert not torch.equal(older["trained.weight"], expected["trained.weight"])
        resumed = train(tmp_path / "killed", SmallModel(), 2, **options)
        found = torch.load(tmp_path / "killed" / "best.th", weights_only=True)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], weight) for name, weight in expected.items())
        assert torch.equal(resumed.trained.weight, expected["trained.weight"])

    @pytest.mark.parametrize("pattern", ["model_state_*.th", "training_state_*.th", FROZEN_WEIGHTS])
    def test_every_flipped_bit_is_noticed(self, tmp_path, pattern):
        """Oracle: the message, with the file, for each of 20 random bits."""
        train(tmp_path, SmallModel(), 1)
        (path,) = tmp_path.glob(pattern)
        content, draw = path.read_bytes(), np.random.default_rng(0)
        for _ in range(20):
            damaged = bytearray(content)
            damaged[draw.integers(len(content))] ^= 1 << int(draw.integers(8))
            path.write_bytes(damaged)
            with pytest.raises(ConfigurationError, match=f"cannot be recovered: .*{path.name} is damaged"):
                train(tmp_path, SmallModel(), 2)

    def test_old_checkpoints_go_and_the_frozen_weights_stay(self, tmp_path):
        """Oracle: the names of files, with `keep_most_recent_by_count`, a parameter of `Checkpointer`."""
        model = train(tmp_path, SmallModel(), 3, keep_most_recent_by_count=1)
        files = {"best.th", "frozen_weights.th", "model_state_e3_b0.th", "training_state_e3_b0.th"}
        assert {name for name in os.listdir(tmp_path) if name.endswith(".th")} == files
        assert_equal_weights(train(tmp_path, SmallModel(seed=7), 3), model)

    def test_checkpoints_within_an_epoch_are_small_too(self, tmp_path):
        """Oracle: the names in the file, with `save_every_num_batches`, a parameter of `Checkpointer`."""
        train(tmp_path, SmallModel(), 1, save_every_num_batches=1)
        assert names_in(tmp_path / "model_state_e0_b1.th") == TRAINED

    def test_it_is_made_from_a_config(self, environment, tmp_path):
        """Oracle: the name in AllenNLP's registry."""
        checkpointer = Checkpointer.from_params(Params({"type": "elmo_frozen_once"}), serialization_dir=str(tmp_path))
        assert isinstance(checkpointer, FrozenOnceCheckpointer)
