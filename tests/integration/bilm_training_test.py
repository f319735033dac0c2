"""Tests of the training of a language model by `allennlp train`: interrupted, in two processes, on a broken text."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_tasks.training import RandomStateCallback
from tests.integration import kill_callback
from tests.language_models import CONFIG, TINY, metrics_of, train_tiny
from tests.paths import CHECKOUT

pytestmark = pytest.mark.slow

ALLENNLP = Path(sys.executable).parent / "allennlp"


@pytest.fixture(scope="module", autouse=True)
def data() -> Iterator[None]:
    """The small data that ships, and all names that the config uses."""
    import elmo_tasks.plugin  # noqa: F401

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ELMO_TASKS_DATA", raising=False)
        yield
    torch.set_num_threads(n_threads)


def run_train(folder: Path, overrides: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
    """Runs `allennlp train` as a user does."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    command = [ALLENNLP, "train", CONFIG, "-s", folder, "-o", json.dumps({**TINY, **overrides}), *options]
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, cwd=folder.parent, env=environment, timeout=300
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = torch.load(folder / "best.th", weights_only=True)
    return state


class TestRecovery:
    def test_a_run_killed_in_an_epoch_ends_as_without_the_kill(self, tmp_path, monkeypatch):
        """
        Oracle: the weights of the undisturbed run, bit by bit, and its validation perplexities; with dropout and few
        samples a step depends on random numbers in two ways. And the other way round: without their state the weights
        are others, so this is no comparison of constants.
        """
        killed, whole, without_state = (tmp_path / name for name in ("killed", "whole", "without_state"))
        callback = {"type": "kill_once", "epoch": 1, "batch": 5, "marker": str(tmp_path / "marker")}
        overrides = {
            "model.n_samples": 20,
            "model.dropout": 0.3,
            "trainer.num_epochs": 2,
            "trainer.checkpointer.save_every_num_batches": 3,
            "trainer.learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 5},
            "trainer.callbacks": ["elmo_random_state", callback],
        }
        process = run_train(killed, overrides, "--include-package", kill_callback.__name__)
        assert process.returncode == -9, process.stderr
        assert (killed / "model_state_e1_b3.th").exists() and not (killed / "model_state_e1_b6.th").exists()
        shutil.copytree(killed, without_state)
        train_tiny(killed, overrides, recover=True)
        # The marker is there now: nothing disturbs this one.
        train_tiny(whole, overrides)
        torch.testing.assert_close(weights(killed), weights(whole), rtol=0, atol=0)
        for name, value in metrics_of(whole).items():
            if name.startswith("validation_"):
                assert metrics_of(killed)[name] == pytest.approx(value, rel=1e-6)
        monkeypatch.setattr(RandomStateCallback, "load_state_dict", lambda self, state: None)
        train_tiny(without_state, overrides, recover=True)
        assert not torch.equal(weights(without_state)["softmax.weight"], weights(whole)["softmax.weight"])


class TestTwoProcesses:
    def test_they_take_the_steps_of_one_that_accumulates_gradients(self, tmp_path):
        """
        Oracle: one process with the mean of two batches for each step, the share of two processes; weights,
        losses and perplexities of both kinds of text. Of an odd number of batches two processes leave the last out, so
        there is an even number of both.
        """
        overrides = {
            "model.softmax": "full",
            "model.dropout": 0.0,
            "data_loader.max_tokens_per_batch": 600,
            "data_loader.batches_per_epoch": 8,
            "validation_data_loader.max_tokens_per_batch": 800,
            "trainer.num_epochs": 2,
            # A step that does not depend on rounding, as one of Adam may.
            "trainer.optimizer": {"type": "sgd", "lr": 1.0},
        }
        one, two = tmp_path / "one", tmp_path / "two"
        expected = train_tiny(one, {**overrides, "trainer.num_gradient_accumulation_steps": 2})
        distributed = {
            **overrides,
            "data_loader.batches_per_epoch": 4,
            "distributed": {"cuda_devices": [-1, -1]},
        }
        process = run_train(two, distributed)
        assert process.returncode == 0, process.stderr
        found = metrics_of(two)
        names = [name for name in expected if "perplexity" in name or name.endswith(("loss", "unknown_share"))]
        assert {"training_loss", "training_perplexity", "validation_loss", "validation_perplexity"} <= set(names)
        for name in names:
            assert found[name] == pytest.approx(expected[name], rel=1e-5), name
        torch.testing.assert_close(weights(two), weights(one), rtol=0, atol=1e-5)


class TestText:
    def test_a_broken_text_is_refused_with_its_line(self, tmp_path):
        """Oracle: the last line that the user sees; the exit status."""
        (tmp_path / "train.txt").write_bytes(b"a b c\na \xff b\n")
        process = run_train(tmp_path / "run", {"train_data_path": str(tmp_path / "train.txt")})
        assert process.returncode == 1
        message = "train.txt, line 2: the file must be UTF-8, but byte 3 of this line is 0xff"
        assert message in process.stderr.strip().splitlines()[-1]

    def test_so_is_one_without_sentences(self, tmp_path):
        """Oracle: the message names the file and its content."""
        (tmp_path / "train.txt").write_bytes(b"\n \n")
        with pytest.raises(ValueError, match=r"train\.txt must hold at least one sentence.*lines: 2 empty"):
            train_tiny(tmp_path / "run", {"train_data_path": str(tmp_path / "train.txt")})

    def test_so_is_a_pattern_that_matches_nothing(self, tmp_path):
        """Oracle: the message names the pattern."""
        with pytest.raises(ConfigurationError, match=r"pattern that matches files, but .*none\*"):
            train_tiny(tmp_path / "run", {"train_data_path": str(tmp_path / "none*")})
