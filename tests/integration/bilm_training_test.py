"""
Tests of training a language model: interrupted, and in two processes. Processes are forked if there
is no GPU, because new interpreters would spend most of the time on imports.
"""

import functools
import json
import shutil
import signal
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from tests.integration.kill_callback import START_METHOD, exit_code_of
from tests.language_models import CONFIG, TINY, metrics_of, train_tiny
from tests.paths import FIXTURES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """
    The included small texts, with part of the training text, and all names that the config uses.
    """
    import elmo_tasks.plugin  # noqa: F401

    folder = tmp_path_factory.mktemp("data") / "lm"
    shutil.copytree(FIXTURES / "lm", folder)
    with (FIXTURES / "lm" / "train.txt").open(encoding="utf-8") as lines:
        (folder / "train.txt").write_text("".join(islice(lines, 120)), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_TASKS_DATA", str(folder.parent))
        yield


def weights(folder: Path) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = torch.load(folder / "best.th", weights_only=True)
    return state


class TestRecovery:
    def test_a_run_killed_in_an_epoch_recovers_to_the_same_weights(self, tmp_path):
        """With dropout and sampled words, bit for bit."""
        killed = tmp_path / "killed"
        whole = tmp_path / "whole"
        marker = tmp_path / "marker"
        callback = {"type": "kill_once", "epoch": 1, "batch": 5, "marker": str(marker)}
        overrides = {
            "data_loader.max_tokens_per_batch": 252,
            "trainer.num_epochs": 2,
            "trainer.checkpointer.save_every_num_batches": 3,
            "trainer.learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 5},
            "trainer.callbacks": [callback],
        }
        # While the marker exists, the callback does not kill a run.
        marker.touch()
        train_tiny(whole, overrides)
        marker.unlink()
        assert exit_code_of(train_tiny, killed, overrides) == -signal.SIGKILL
        assert (killed / "model_state_e1_b3.th").exists()
        assert not (killed / "model_state_e1_b6.th").exists()
        train_tiny(killed, overrides, recover=True)
        torch.testing.assert_close(weights(killed), weights(whole), rtol=0, atol=0)
        metrics = metrics_of(killed)
        for name, expected in metrics_of(whole).items():
            if name.startswith("validation_"):
                assert metrics[name] == pytest.approx(expected, rel=1e-6)


class TestTwoProcesses:
    def test_they_take_the_steps_of_one_process_that_accumulates_gradients(
        self, tmp_path, monkeypatch
    ):
        """Two processes take two batches per step; the text has eight batches."""
        overrides = {
            "model.softmax": "full",
            "model.dropout": 0.0,
            "data_loader.max_tokens_per_batch": 252,
            "validation_data_loader.max_tokens_per_batch": 800,
            "trainer.num_epochs": 2,
            # Unlike a step of Adam, a step of SGD does not amplify rounding errors.
            "trainer.optimizer": {"type": "sgd", "lr": 1.0},
        }
        one = tmp_path / "one"
        two = tmp_path / "two"
        expected = train_tiny(one, {**overrides, "trainer.num_gradient_accumulation_steps": 2})
        distributed = {**overrides, "distributed": {"cuda_devices": [-1, -1]}}
        start = functools.partial(torch.multiprocessing.start_processes, start_method=START_METHOD)
        monkeypatch.setattr(torch.multiprocessing, "spawn", start)
        metrics = train_tiny(two, distributed)
        for name in ("loss", "perplexity"):
            assert f"training_{name}" in expected
            assert f"validation_{name}" in expected
        for name, value in expected.items():
            if "perplexity" in name or name.endswith(("loss", "unknown_share")):
                assert metrics[name] == pytest.approx(value, rel=1e-5), name
        torch.testing.assert_close(weights(two), weights(one), rtol=0, atol=1e-5)


class TestWordList:
    def test_a_recovered_run_has_the_words_of_its_weights(self, tmp_path):
        """With a list in a different order, another epoch without learning has the same loss."""
        words = ["<S>", "</S>", "<UNK>", "the", "of", "and", ".", ","]
        path = tmp_path / "words.txt"
        run = tmp_path / "run"
        vocabulary = {"type": "elmo_lm_from_file", "path": str(path)}
        overrides = {"vocabulary": vocabulary, "trainer.optimizer.lr": 0.0}
        path.write_text("\n".join(words))
        loss = train_tiny(run, overrides)["validation_loss"]
        more = {**overrides, "trainer.num_epochs": 2}
        params = Params.from_file(CONFIG, json.dumps({**TINY, **more}))
        params.to_file(str(run / "config.json"))
        path.write_text("\n".join([*words[:3], *reversed(words[3:])]))
        metrics = train_tiny(run, more, recover=True)
        assert metrics["epoch"] == 1
        assert metrics["validation_loss"] == pytest.approx(loss, rel=1e-6)
        before = (run / "vocabulary" / "lm.txt").read_text()
        path.write_text("\n".join([*words, "zebra"]))
        with pytest.raises(ConfigurationError, match="lm: 1 new, such as 'zebra'"):
            train_tiny(run, more, recover=True)
        assert (run / "vocabulary" / "lm.txt").read_text() == before
