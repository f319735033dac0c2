import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_tasks.bilm import Bilm
from elmo_tasks.models import BilmLanguageModel
from tests.paths import TINY_BILM, TRAINING_CONFIGS
from tests.training_configs.configs import differences, evaluated

# "bilm_original" is too large for a test.
# Fine-tuning also trains a softmax and prints two perplexities, so it runs daily.
TRAINED_BILMS = [pytest.param(name, marks=pytest.mark.weekly) for name in ("bilm", "bilm_softmax")]
TRAINED_BILMS.append("bilm_finetune")


class TestBilmConfigs:
    def test_the_original_config_matches_the_paper(self, environment):
        """Oracle: section 3.4 of the paper, and the options and training loop of bilm-tf."""
        config = evaluated(TRAINING_CONFIGS / "bilm_original.jsonnet")
        model = config["model"]
        assert model["options"]["lstm"] == {
            "n_layers": 2,
            "dim": 4096,
            "projection_dim": 512,
            "cell_clip": 3,
            "proj_clip": 3,
            "use_skip_connections": True,
        }
        characters = model["options"]["char_cnn"]
        assert sum(number for _, number in characters["filters"]) == 2048
        assert characters["n_highway"] == 2
        assert characters["activation"] == "relu"
        assert characters["embedding"]["dim"] == 16
        assert model["dropout"] == 0.1
        assert model["softmax"] == "sampled"
        assert inspect.signature(BilmLanguageModel).parameters["n_samples"].default == 8192
        trainer = config["trainer"]
        assert trainer["num_epochs"] == 10
        # bilm-tf uses 0.2, 1.0 and 10.0 for a gradient that is 20 times as large as ours.
        optimizer = trainer["optimizer"]
        assert optimizer["type"] == "adagrad"
        assert optimizer["lr"] == 0.2
        assert optimizer["initial_accumulator_value"] == pytest.approx(1.0 / 20**2)
        assert trainer["grad_norm"] == pytest.approx(10.0 / 20)
        assert "learning_rate_scheduler" not in trainer
        assert config["data_loader"]["max_tokens_per_batch"] == 3 * 128 * 20

    def test_adagrad_takes_the_steps_of_bilm_tf(self, environment):
        """bilm-tf's gradients are 20 times as large."""
        trainer = evaluated(TRAINING_CONFIGS / "bilm_original.jsonnet")["trainer"]
        options = trainer["optimizer"]
        del options["type"]
        gradients = 0.2 * torch.randn(5, 7, generator=torch.Generator().manual_seed(0))

        def trained(scale: float, max_norm: float, **options: float) -> torch.Tensor:
            weight = torch.nn.Parameter(torch.zeros(7))
            optimizer = torch.optim.Adagrad([weight], **options)
            for gradient in gradients:
                weight.grad = gradient * scale
                torch.nn.utils.clip_grad_norm_([weight], max_norm)
                optimizer.step()
            return weight.detach()

        weight = trained(scale=1.0, max_norm=trainer["grad_norm"], **options)
        expected = trained(scale=20.0, max_norm=10.0, lr=0.2, initial_accumulator_value=1.0)
        torch.testing.assert_close(weight, expected)

    def test_the_small_config_has_the_shape_of_the_included_bilm(self, environment):
        options = evaluated(TRAINING_CONFIGS / "bilm.jsonnet")["model"]["options"]
        published = evaluated(TRAINING_CONFIGS / "bilm_finetune.jsonnet")["model"]["options"]
        assert published["lstm"]["dim"] == 32, "the tiny biLM of the tests"
        environment.delenv("ELMO_TASKS_BILM")
        published = evaluated(TRAINING_CONFIGS / "bilm_finetune.jsonnet")["model"]["options"]
        assert differences(options, published) <= {"lstm.cell_clip", "lstm.proj_clip"}

    def test_word_list_and_softmax_are_arguments(self, environment, tmp_path):
        arguments = "word_list='vocab.txt', softmax='full', epochs=3"
        library = TRAINING_CONFIGS / "lib" / "bilm.libsonnet"
        config = evaluated_text(tmp_path, f"(import '{library}')({arguments})")
        expected = evaluated(TRAINING_CONFIGS / "bilm.jsonnet")
        expected["vocabulary"] = {"type": "elmo_lm_from_file", "path": "vocab.txt"}
        expected["model"]["softmax"] = "full"
        expected["trainer"]["num_epochs"] = 3
        assert differences(config, expected) == set()


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", TRAINED_BILMS)
    def test_a_published_bilm_config_trains_a_self_contained_archive(
        self, environment, command, tmp_path, fixtures_root, name, capsys
    ):
        """The text and biLM are deleted before the archive is used."""
        text = tmp_path / "lm"
        bilm = tmp_path / "bilm"
        run = tmp_path / "run"
        shutil.copytree(fixtures_root / "lm", text)
        shutil.copytree(TINY_BILM, bilm)
        environment.setenv("ELMO_TASKS_DATA", str(tmp_path))
        environment.setenv("ELMO_TASKS_BILM", str(bilm))
        overrides = {"trainer.num_epochs": 1}
        if name == "bilm":
            overrides["model.options.lstm.dim"] = 32
            overrides["model.options.lstm.projection_dim"] = 8
        config = TRAINING_CONFIGS / f"{name}.jsonnet"
        command("train", config, "-s", run, "-o", json.dumps(overrides))
        metrics = json.loads((run / "metrics.json").read_text())
        n_words = len((run / "vocabulary" / "lm.txt").read_text().splitlines())
        assert 1.0 < metrics["validation_perplexity"] < 2 * n_words
        if name == "bilm_finetune":
            before = json.loads((run / "metrics_before.json").read_text())["perplexity"]
            after = metrics["best_validation_perplexity"]
            assert f"{before:.2f} before, {after:.2f} after" in capsys.readouterr().out
        if name == "bilm_softmax":
            command("elmo-export", run / "model.tar.gz", tmp_path / "exported")
            exported = state_of(tmp_path / "exported")
            for key, weight in state_of(bilm).items():
                assert torch.equal(exported[key], weight), key
        dev = shutil.copy(text / "dev.txt", tmp_path / "dev.txt")
        shutil.rmtree(text)
        shutil.rmtree(bilm)
        output = tmp_path / "evaluated.json"
        command("evaluate", run / "model.tar.gz", dev, "--output-file", output)
        evaluated_metrics = json.loads(output.read_text())
        for key in (
            "perplexity",
            "forward_perplexity",
            "backward_perplexity",
            "unknown_share",
            "loss",
        ):
            expected = pytest.approx(metrics[f"best_validation_{key}"], rel=1e-5)
            assert evaluated_metrics[key] == expected, key


def state_of(folder: Path) -> dict[str, torch.Tensor]:
    return Bilm.from_files(folder / "options.json", folder / "weights.hdf5").state_dict()


class TestWords:
    @pytest.mark.parametrize("name", ["bilm_finetune", "bilm_softmax"])
    def test_only_fine_tuning_uses_the_word_list_of_the_bilm(self, environment, tmp_path, name):
        bilm = tmp_path / "bilm"
        shutil.copytree(TINY_BILM, bilm)
        environment.setenv("ELMO_TASKS_BILM", str(bilm))
        without_list = evaluated(TRAINING_CONFIGS / f"{name}.jsonnet")["vocabulary"]
        assert without_list["type"] == "elmo_lm"
        (bilm / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
        config = evaluated(TRAINING_CONFIGS / f"{name}.jsonnet")
        if name == "bilm_finetune":
            expected = {"type": "elmo_lm_from_file", "path": str(bilm / "vocab.txt")}
        else:
            expected = without_list
        assert config["vocabulary"] == expected
        assert "word_list" not in config["model"]


class TestSizes:
    def test_a_custom_size_changes_only_the_given_settings(
        self, environment, tmp_path, training_configs
    ):
        library = training_configs / "lib" / "bilm.libsonnet"

        def of_size(size: str) -> dict[str, Any]:
            return evaluated_text(tmp_path, f"(import '{library}')(size={size})")

        own = of_size("{ cells: 512, projection: 64, epochs: 2 }")
        assert own["model"]["options"]["lstm"]["dim"] == 512
        assert differences(of_size("'small'"), own) == {
            "model.options.lstm.dim",
            "model.options.lstm.projection_dim",
            "trainer.num_epochs",
        }


def evaluated_text(folder: Path, text: str) -> dict[str, Any]:
    (folder / "config.jsonnet").write_text(text)
    return evaluated(folder / "config.jsonnet")
