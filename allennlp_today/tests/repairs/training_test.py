import multiprocessing
import shutil
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.data import Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.models import Model
from allennlp.models.archival import archive_model
from allennlp.nn.util import read_state_dict
from allennlp.training import Checkpointer, GradientDescentTrainer
from allennlp.training.moving_average import ExponentialMovingAverage

from allennlp_today.files import warn_of_a_training
from elmo_tasks.files.atomic_files import locked
from elmo_tasks.trainer import FrozenOnceCheckpointer


class Constant(Model):
    def __init__(self) -> None:
        super().__init__(Vocabulary())
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self) -> dict[str, torch.Tensor]:
        return {"loss": self.weight.sum()}


class OneBatch(list):
    def set_target_device(self, device: torch.device) -> None:
        pass


def trainer(
    folder: Path,
    n_epochs: int,
    *,
    rate: float = 0.0,
    decay: float | None = None,
    validate: bool = True,
    checkpointer: type[Checkpointer] = Checkpointer,
) -> GradientDescentTrainer:
    """At a learning rate of 0, nothing is learned, so patience runs out after the second epoch."""
    model = Constant()
    loader = OneBatch([{}])
    return GradientDescentTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=abs(rate), maximize=rate < 0),
        loader,
        validation_data_loader=loader if validate else None,
        patience=1 if validate else None,
        num_epochs=n_epochs,
        serialization_dir=str(folder),
        checkpointer=checkpointer(str(folder)),
        moving_average=decay and ExponentialMovingAverage(model.named_parameters(), decay),
        cuda_device=torch.device("cpu"),
    )


class Killed(BaseException):
    pass


def kill(*args: object, **kwargs: object) -> None:
    raise Killed(*args)


class TestEndRecoveredRunsThatHadEnded:
    def test_a_run_with_no_patience_left_does_not_continue(self, tmp_path):
        assert trainer(tmp_path, 9).train()["epoch"] == 1
        files = {path.name for path in tmp_path.iterdir()}
        trainer(tmp_path, 9).train()
        assert {path.name for path in tmp_path.iterdir()} == files


class TestBestWeights:
    @pytest.mark.parametrize("checkpointer", [Checkpointer, FrozenOnceCheckpointer])
    @pytest.mark.parametrize(
        ("n_epochs", "options"),
        [
            (1, {}),
            (2, {}),
            (2, {"validate": False}),
            (2, {"decay": 0.5}),
            # The second epoch is not the best one.
            (2, {"rate": -0.25}),
        ],
    )
    def test_after_a_kill_before_they_are_written_they_have_the_score(
        self, tmp_path, n_epochs, options, checkpointer
    ):
        file, earlier = tmp_path / "best.th", torch.full((1,), -1.0)
        options = {"rate": 0.25, "checkpointer": checkpointer, **options}
        whole = trainer(tmp_path, n_epochs, **options).train()
        expected = earlier if options["rate"] < 0 else torch.load(file)["weight"]
        file.unlink()
        if n_epochs == 2:
            torch.save({"weight": earlier}, file)
        recovered = trainer(tmp_path, n_epochs, **options).train()
        assert torch.equal(torch.load(file)["weight"], expected)
        assert recovered.get("best_validation_loss") == whole.get("best_validation_loss")


class TestLockRuns:
    @pytest.mark.parametrize("option", ["recover", "force"])
    def test_a_second_training_in_a_folder_is_refused(self, tmp_path, option):
        left, mine = tmp_path / "_tmp-0123456789ab-best.th", tmp_path / "_tmp-notes"
        for file in (left, mine):
            file.touch()
        with locked(tmp_path), pytest.raises(BlockingIOError, match=tmp_path.name):
            train_model(Params({}), str(tmp_path), **{option: True})
        assert left.exists() and mine.exists()
        with pytest.raises(ConfigurationError):
            train_model(Params({}), str(tmp_path), **{option: True})
        assert not left.exists() and mine.exists() == (option == "recover")

    @pytest.mark.parametrize(
        ("file", "hint"), [("config.json", "no checkpoint"), ("model_state_e1_b0.th", "--recover")]
    )
    def test_an_existing_folder_says_what_can_be_done(self, tmp_path, file, hint):
        (tmp_path / file).touch()
        with pytest.raises(ConfigurationError) as caught:
            train_model(Params({}), str(tmp_path))
        assert hint in caught.value.message and "--force" in caught.value.message

    def test_a_model_in_training_is_a_warning(self, tmp_path, recwarn):
        warn_of_a_training(tmp_path / "model.tar.gz")
        assert not recwarn
        with locked(tmp_path), pytest.warns(UserWarning, match=tmp_path.name):
            warn_of_a_training(tmp_path / "model.tar.gz")


class TestReadEpochs:
    @pytest.fixture
    def run(self, tmp_path) -> Path:
        """The folder of a run without `best.th`."""
        torch.save({"frozen": torch.ones(1)}, tmp_path / "frozen_weights.th")
        torch.save({"trained": torch.ones(2)}, tmp_path / "model_state_e1_b0.th")
        (tmp_path / "config.json").write_text("{}")
        Vocabulary().save_to_files(str(tmp_path / "vocabulary"))
        return tmp_path

    def test_the_weights_of_an_epoch_are_whole(self, run):
        assert set(read_state_dict(run / "model_state_e1_b0.th")) == {"frozen", "trained"}
        shutil.copy(run / "model_state_e1_b0.th", run / "best.th")
        assert set(read_state_dict(run / "best.th")) == {"trained"}

    def test_an_archive_of_an_epoch_is_whole(self, run):
        with tarfile.open(archive_model(str(run), weights="model_state_e1_b0.th")) as archive:
            archive.extract("weights.th", run, filter="data")
        assert set(torch.load(run / "weights.th")) == {"frozen", "trained"}

    def test_a_run_without_a_finished_epoch_says_what_to_do(self, run):
        with pytest.raises(
            FileNotFoundError,
            match=r"best\.th \(continue with --recover; or .*model_state_e1_b0\.th",
        ):
            read_state_dict(run / "best.th")


class TestNameDamagedVocabularies:
    @pytest.mark.parametrize("content", [b"a\n", b"@@UNKNOWN@@\n\xff\n"])
    def test_an_error_names_the_file(self, tmp_path, content):
        (tmp_path / "non_padded_namespaces.txt").touch()
        (tmp_path / "path.tags.txt").write_bytes(content)
        with pytest.raises(ConfigurationError, match=r"path\.tags\.txt"):
            Vocabulary.from_files(tmp_path)


class TestWriteWhole:
    def test_the_best_weights_survive_an_interrupted_write(self, tmp_path, monkeypatch):
        trainer(tmp_path, 1).train()
        before = (tmp_path / "best.th").read_bytes()
        for file in tmp_path.glob("*_state_*"):
            file.unlink()
        monkeypatch.setattr(
            torch, "save", lambda state, file: (Path(file).write_bytes(b"half"), kill(file))
        )
        with pytest.raises(Killed, match="best"):
            trainer(tmp_path, 1).train()
        assert (tmp_path / "best.th").read_bytes() == before

    def test_an_archive_survives_an_interrupted_write(self, tmp_path, monkeypatch):
        (tmp_path / "vocabulary").mkdir()
        (tmp_path / "config.json").write_text("{}")
        torch.save({}, tmp_path / "best.th")
        assert archive_model(tmp_path) == str(tmp_path / "model.tar.gz")
        before = (tmp_path / "model.tar.gz").read_bytes()
        with tarfile.open(tmp_path / "model.tar.gz") as archive:
            assert {"config.json", "weights.th"} <= set(archive.getnames())
        monkeypatch.setattr(tarfile.TarFile, "add", kill)
        with pytest.raises(Killed):
            archive_model(tmp_path)
        assert (tmp_path / "model.tar.gz").read_bytes() == before


class TestLockInContextOfWorkers:
    @pytest.mark.parametrize("kind", ["instance", "batch"])
    def test_the_lock_is_made_by_the_context_of_the_workers(self, kind):
        before = Tqdm.get_lock()
        lock = multiprocessing.get_context("spawn").RLock()
        started = []

        class Process:
            def __init__(self, args, **options) -> None:
                self.args = args

            def start(self) -> None:
                started.append(self.args)

        context = SimpleNamespace(
            RLock=lambda: lock, Pipe=lambda duplex: (None, None), Process=Process
        )
        loader = SimpleNamespace(num_workers=2, _instance_worker="instance", _batch_worker="batch")
        try:
            getattr(MultiProcessDataLoader, f"_start_{kind}_workers")(loader, "queue", context)
        finally:
            Tqdm.set_lock(before)
        assert [arguments[2] for arguments in started] == [lock, lock]
