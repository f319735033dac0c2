"""Tests of AllenNLP's commands on a small tagger, from training to prediction."""

import atexit
import functools
import json
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from allennlp.commands import train as train_command
from allennlp.common import Params
from allennlp.common.plugins import import_plugins

from tests.integration.kill_callback import START_METHOD, exit_code_of
from tests.paths import TINY_BILM

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("logging_as_before")]

CONFIG = Path(__file__).parent / "tagger.jsonnet"
PEOPLE = "Anna Ben Clara David Emma Felix Greta Hugo Ida Jonas Klara Leo"
PLACES = "Oslo Rome Paris Vienna Lima Quito Cairo Tokyo Delhi Seoul Lagos Accra"


def conll_2003(people: list[str], places: list[str]) -> str:
    """One sentence per pair of person and place, with one token per line in four columns."""
    sentences = []
    for person, place in zip(people, places, strict=True):
        lines = [
            f"{person} NNP I-NP I-PER",
            "lives VBZ I-VP O",
            "in IN I-PP O",
            f"{place} NNP I-NP I-LOC",
            ". . O O",
        ]
        sentences.append("\n".join(lines) + "\n")
    return "\n".join(sentences) + "\n"


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """
    A file of twelve sentences, where the config expects it, and all names that the config uses.
    """
    path = tmp_path_factory.mktemp("data") / "train.txt"
    path.write_text(conll_2003(PEOPLE.split(), PLACES.split()))
    import_plugins()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAGGER_DATA", str(path))
        patch.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
        yield path


def train(
    serialization_dir: Path, overrides: dict[str, Any] | None = None, *, recover: bool = False
) -> None:
    params = Params.from_file(str(CONFIG), json.dumps(overrides or {}))
    train_command.train_model(params, str(serialization_dir), recover=recover, return_model=False)


def weights(serialization_dir: Path) -> dict[str, torch.Tensor]:
    return torch.load(serialization_dir / "best.th", weights_only=True)


def metrics(serialization_dir: Path) -> dict[str, Any]:
    return json.loads((serialization_dir / "metrics.json").read_text())


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    train(folder)
    return folder


class TestTrain:
    @pytest.mark.weekly
    def test_training_again_gives_the_same_weights(self, trained, tmp_path):
        """With AllenNLP's default seeds."""
        train(tmp_path / "run")
        torch.testing.assert_close(weights(tmp_path / "run"), weights(trained), rtol=0, atol=0)

    def test_a_training_that_was_killed_is_recovered(self, tmp_path):
        killed = tmp_path / "killed"
        whole = tmp_path / "whole"
        (tmp_path / "present").touch()
        callback = {"type": "kill_once", "epoch": 2, "marker": str(tmp_path / "marker")}
        # The data is shuffled.
        overrides = {"trainer.callbacks": [callback], "trainer.num_epochs": 4, "model.dropout": 0.5}
        assert exit_code_of(train, killed, overrides) == -signal.SIGKILL
        assert not (killed / "model.tar.gz").exists()
        train(killed, overrides, recover=True)
        assert metrics(killed)["epoch"] == 3
        callback["marker"] = str(tmp_path / "present")
        train(whole, overrides)
        torch.testing.assert_close(weights(killed), weights(whole), rtol=0, atol=0)


class TestWorkers:
    # With max_instances_in_memory, workers make batches; without, they make instances.
    @pytest.mark.parametrize(
        ("start_method", "max_instances"),
        [("fork", None), ("fork", 4), pytest.param("spawn", None, marks=pytest.mark.weekly)],
    )
    def test_workers_read_the_same_as_the_main_process(
        self, start_method, max_instances, trained, tmp_path, capfd
    ):
        overrides = {
            # One worker is enough, because each spawned worker repeats all imports.
            "data_loader.num_workers": 1,
            "data_loader.start_method": start_method,
            "data_loader.max_instances_in_memory": max_instances,
            "trainer.num_epochs": 1,
            "validation_data_path": None,
            "trainer.learning_rate_scheduler": None,
        }
        run = tmp_path / "run"
        train(run, overrides)
        assert "Traceback" not in capfd.readouterr().err
        assert (run / "model.tar.gz").exists()
        for file in ("tokens.txt", "labels.txt"):
            words = (run / "vocabulary" / file).read_text().splitlines()
            expected = (trained / "vocabulary" / file).read_text().splitlines()
            assert sorted(words) == sorted(expected)

    @pytest.mark.weekly
    def test_two_processes_train_together(self, tmp_path, monkeypatch, capfd):
        """
        Forked unless a GPU rules it out, because spawned workers spend half a minute on imports.
        """
        # The first optimizer imports torch's compiler, which takes seconds: once here instead of in
        # each worker.
        torch.optim.SGD([torch.zeros(1)], lr=0.1)
        start = functools.partial(torch.multiprocessing.start_processes, start_method=START_METHOD)
        monkeypatch.setattr(torch.multiprocessing, "spawn", start)
        # A fork would inherit the exit functions of this process.
        monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: None)
        run = tmp_path / "run"
        train(run, {"trainer.num_epochs": 2, "distributed": {"cuda_devices": [-1, -1]}})
        stderr = capfd.readouterr().err
        assert "Traceback" not in stderr
        assert "Warning" not in stderr
        for log in ("out_worker0.log", "out_worker1.log"):
            assert (run / log).stat().st_size > 0
        assert (run / "model.tar.gz").exists()
        assert metrics(run)["epoch"] == 1


class TestCommandsWithAConfig:
    def test_build_vocab(self, trained, tmp_path, command):
        command("build-vocab", CONFIG, tmp_path / "vocabulary.tar.gz")
        with tarfile.open(tmp_path / "vocabulary.tar.gz") as archive:
            built = archive.extractfile("labels.txt").read().decode()
        assert built == (trained / "vocabulary" / "labels.txt").read_text()

    def test_find_lr(self, tmp_path, command):
        command("find-lr", CONFIG, "-s", tmp_path / "run", "--num-batches", 20)
        assert (tmp_path / "run" / "lr-losses.png").read_bytes().startswith(b"\x89PNG")
