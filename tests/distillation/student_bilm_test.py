"""Tests of a small biLM that learns the layers of a larger one."""

import json
import os
import shutil
import signal
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import load_archive

from elmo_tasks import Elmo
from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.data.data_loaders.unique_word_batch import UniqueWordBatch
from elmo_tasks.distillation import StudentBilm
from elmo_tasks.modules.contextual.pretrained_bilm import PretrainedBilm
from tests.bilm.helpers import random_bilm, save
from tests.bilm.many_langs.models import write_model
from tests.integration.kill_callback import exit_code_of
from tests.paths import FIXTURES, TINY_BILM, TRAINING_CONFIGS, bilm_files
from tests.training_configs.configs import differences, evaluated

CONFIG = TRAINING_CONFIGS / "bilm_student.jsonnet"
SENTENCES = ["the cat sat .", "a dog", "the dog and the cat sat"]


def options_of(bilm: Bilm, **lstm: int) -> dict[str, Any]:
    options = bilm.options.to_dict()
    return {**options, "lstm": {**options["lstm"], "dim": 5, **lstm}}


@pytest.fixture
def teacher(tmp_path: Path) -> PretrainedBilm:
    bilm = random_bilm()
    return PretrainedBilm(bilm.options.to_dict(), save(bilm, tmp_path)[1])


def make(teacher: PretrainedBilm, **lstm: int) -> StudentBilm:
    torch.manual_seed(0)
    return StudentBilm(Vocabulary(), options_of(teacher.bilm, **lstm), teacher)


def batch(sentences: list[str] = SENTENCES) -> dict[str, torch.Tensor]:
    return UniqueWordBatch.from_sentences(sentences, {}, 0).to_tensors(None)


class TestStudentBilm:
    @pytest.mark.parametrize("projection_dim", [6, 4, 9])
    def test_the_loss_is_the_share_of_the_teacher_that_is_missing(self, teacher, projection_dim):
        """Oracle: NumPy, on the layers of the words of each sentence alone, with maps of random numbers."""
        model = make(teacher, projection_dim=projection_dim)
        for each in model.maps:
            torch.nn.init.normal_(each.weight)
            torch.nn.init.normal_(each.bias)
        loss = model(**batch())["loss"].item()
        expected = []
        for layer, each in enumerate(model.maps):
            weight, bias = each.weight.detach().numpy(), each.bias.detach().numpy()
            with torch.no_grad():
                student, target = (
                    np.concatenate([bilm([words.split()]).layers[layer][0].numpy() for words in SENTENCES])
                    for bilm in (model.bilm, teacher.bilm)
                )
            expected.append(np.mean((student @ weight.T + bias - target) ** 2) / np.mean(target**2))
        assert loss == pytest.approx(np.mean(expected), rel=1e-4)
        metrics = model.get_metrics(reset=True)
        assert metrics["error"] == pytest.approx(loss)
        assert [metrics[f"error_layer_{layer}"] for layer in range(3)] == pytest.approx(expected, rel=1e-4)

    def test_a_student_with_the_weights_of_its_teacher_has_nothing_to_learn(self, teacher):
        """Oracle: the maps begin as the identity, so that there is no error."""
        model = make(teacher, dim=8)
        model.bilm.load_state_dict(teacher.bilm.state_dict())
        assert model(**batch())["loss"].item() == pytest.approx(0, abs=1e-12)

    def test_it_may_begin_with_weights_of_its_teacher(self, teacher):
        """Oracle: at the teacher's own size there is nothing to learn."""
        options = options_of(teacher.bilm, dim=8)
        model = StudentBilm(Vocabulary(), options, teacher, start="teacher")
        assert model(**batch())["loss"].item() == pytest.approx(0, abs=1e-12)

    def test_the_student_learns_and_the_teacher_stays(self, teacher):
        """Oracle: gradients by name; the loss falls by a fifth; the weights of the teacher as they were."""
        model = make(teacher)
        before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
        trained = [weight for weight in model.parameters() if weight.requires_grad]
        optimizer = torch.optim.Adam(trained, lr=0.1)
        losses = []
        for _ in range(12):
            optimizer.zero_grad()
            loss = model(**batch())["loss"]
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with_gradient = {name for name, weight in model.named_parameters() if weight.grad is not None}
        assert with_gradient == {name for name, _ in model.named_parameters() if not name.startswith("teacher.")}
        assert losses[-1] < 0.8 * losses[0]
        assert all(torch.equal(weight, before[name]) for name, weight in teacher.state_dict().items())

    def test_the_layers_of_the_teacher_may_come_from_the_cache(self, teacher, tmp_path):
        """Oracle: the loss without a cache, twice; the second time the teacher computes nothing."""
        expected = make(teacher)(**batch())["loss"].item()
        cached = PretrainedBilm(
            teacher.bilm.options.to_dict(), str(tmp_path / "weights.hdf5"), cache_folder=str(tmp_path / "cache")
        )
        model = make(cached)
        assert model(**batch())["loss"].item() == pytest.approx(expected, rel=1e-6)
        cached.bilm.forward = None
        assert model(**batch())["loss"].item() == pytest.approx(expected, rel=1e-6)


class TestBadInput:
    def test_another_number_of_layers_is_an_error(self, teacher):
        """Oracle: the message names both."""
        with pytest.raises(ConfigurationError, match=r"lstm\.n_layers is 3 in the student and 2 in the teacher"):
            make(teacher, n_layers=3)

    def test_options_that_make_no_bilm_are_an_error(self, teacher):
        """Oracle: the message names the key."""
        with pytest.raises(ConfigurationError, match=r"the student cannot be made: .*lstm\.dim must be .* but is 0"):
            make(teacher, dim=0)

    @pytest.mark.parametrize(
        ("start", "message"),
        [
            ("zero", "the start of a student must be 'random' or 'teacher', but is 'zero'"),
            (
                "teacher",
                r"cannot begin with weights of its teacher: lstm\.dim must be at most 8, .* set start to 'random'",
            ),
        ],
    )
    def test_a_start_that_cannot_be_is_an_error(self, teacher, start, message):
        """Oracle: the message."""
        with pytest.raises(ConfigurationError, match=message):
            StudentBilm(Vocabulary(), options_of(teacher.bilm, dim=9), teacher, start=start)

    def test_a_teacher_that_is_trained_is_an_error(self, teacher):
        """Oracle: the message."""
        teacher.requires_grad_(True)
        with pytest.raises(ConfigurationError, match="must be frozen, but its requires_grad is true"):
            make(teacher)

    def test_a_teacher_with_dictionaries_is_an_error(self, tmp_path):
        """Oracle: the message; its words are no bytes."""
        bilm = Bilm.from_files(*(write_model(tmp_path / "model") / name for name in ("config.json", "encoder.pkl")))
        options = BilmOptions().to_dict()
        options["lstm"] = {**options["lstm"], "dim": 4, "projection_dim": 2, "n_layers": bilm.options.n_layers}
        with pytest.raises(ConfigurationError, match="has dictionaries of its own"):
            StudentBilm(Vocabulary(), options, PretrainedBilm(bilm.options.to_dict()))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"pretrained_file": "/none/weights.hdf5"}, "/none/weights.hdf5"),
            ({"pretrained_file": None}, "this biLM is frozen and its weights were never loaded"),
        ],
    )
    def test_a_teacher_that_is_missing_is_an_error(self, environment, small_text, tmp_path, change, message):
        """Oracle: the message of a training names the file, or what is missing."""
        config = evaluated(CONFIG)
        config["model"]["teacher"].update(change)
        with pytest.raises(ConfigurationError, match=message):
            train_model(Params(config), str(tmp_path / "run"))


@pytest.fixture
def small_text(environment: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A root of data with a part of the small text."""
    folder = tmp_path / "data" / "lm"
    folder.mkdir(parents=True)
    for part, n_lines in (("train", 45), ("dev", 10)):
        with (FIXTURES / "lm" / f"{part}.txt").open(encoding="utf-8") as lines:
            (folder / f"{part}.txt").write_text("".join(islice(lines, n_lines)), encoding="utf-8")
    environment.setenv("ELMO_TASKS_DATA", str(folder.parent))
    return folder.parent


class TestConfig:
    def test_it_has_a_quarter_of_the_cells_of_the_teacher(self, environment, tmp_path):
        """Oracle: by hand, for the biLM of the tests; arguments change what they name."""
        config = evaluated(CONFIG)
        options = config["model"]["teacher"]["options"]
        assert options == json.loads((TINY_BILM / "options.json").read_text())
        assert differences(options, config["model"]["options"]) == {
            "lstm.dim",
            *(f"char_cnn.filters.{filter}.1" for filter in range(3)),
        }
        assert config["model"]["options"]["lstm"]["dim"] == 32 // 4
        assert config["model"]["options"]["char_cnn"]["filters"] == [[1, 3], [2, 6], [3, 6]]
        snippet = tmp_path / "variant.jsonnet"
        arguments = "cells=9, precision='bf16', batches_per_epoch=7, epochs=3"
        snippet.write_text(f"(import '{TRAINING_CONFIGS}/lib/bilm_student.libsonnet')({arguments})")
        assert differences(config, evaluated(snippet)) == {
            "model.options.lstm.dim",
            "model.teacher.precision",
            "data_loader.batches_per_epoch",
            "trainer.num_epochs",
        }


@pytest.mark.slow
class TestTraining:
    def test_a_killed_training_resumes_and_its_export_is_the_student(self, small_text, environment, command, tmp_path):
        """
        Oracle: the weights of an undisturbed training, bit by bit; checkpoints without the teacher; then, without text
        and teacher, the layers that the archive's student gives, by `Elmo` from the exported folder.
        """
        bilm = shutil.copytree(TINY_BILM, tmp_path / "bilm")
        environment.setenv("ELMO_TASKS_BILM", str(bilm))
        marker = tmp_path / "marker"
        overrides = {
            "data_loader.max_tokens_per_batch": 252,
            "trainer.num_epochs": 2,
            "trainer.checkpointer.save_every_num_batches": 2,
            "trainer.callbacks": [
                "elmo_random_state",
                {"type": "kill_once", "epoch": 1, "batch": 3, "marker": str(marker)},
            ],
        }

        def train(folder: Path, *, recover: bool = False) -> None:
            params = Params.from_file(CONFIG, json.dumps(overrides))
            train_model(params, str(folder), recover=recover, return_model=False)

        marker.touch()
        train(tmp_path / "whole")
        marker.unlink()
        killed = tmp_path / "killed"
        assert exit_code_of(train, killed) == -signal.SIGKILL
        states = list(killed.glob("model_state_*.th"))
        assert states and not any(
            name.startswith("teacher.") for path in states for name in torch.load(path, weights_only=True)
        )
        train(killed, recover=True)
        found, expected = (torch.load(run / "best.th", weights_only=True) for run in (killed, tmp_path / "whole"))
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], weight) for name, weight in expected.items())
        errors = [json.loads((killed / f"metrics_epoch_{epoch}.json").read_text()) for epoch in (0, 1)]
        assert errors[1]["validation_error"] < errors[0]["validation_error"]

        for folder in (bilm, small_text):
            shutil.rmtree(folder)
        command("elmo-export", killed / "model.tar.gz", tmp_path / "exported")
        assert set(os.listdir(tmp_path / "exported")) == {"options.json", "weights.hdf5"}
        sentences = [words.split() for words in SENTENCES]
        student = load_archive(killed / "model.tar.gz").model.bilm
        with torch.no_grad():
            layers = student(sentences).layers
        elmo = Elmo.from_pretrained(tmp_path / "exported", device="cpu")
        for row, vectors in enumerate(elmo.embed(sentences, layers="all")):
            for layer, of_layer in enumerate(layers):
                expected_layer = of_layer[row, : len(sentences[row])].numpy()
                np.testing.assert_allclose(vectors[layer], expected_layer, rtol=0, atol=1e-6)
        assert Bilm.from_files(*bilm_files(tmp_path / "exported")).options.cell_dim == 8
