import inspect
import json
import shutil

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
        model, trainer = config["model"], config["trainer"]
        lstm, characters = model["options"]["lstm"], model["options"]["char_cnn"]
        assert (lstm["n_layers"], lstm["dim"], lstm["projection_dim"]) == (2, 4096, 512)
        assert (lstm["cell_clip"], lstm["proj_clip"], lstm["use_skip_connections"]) == (3, 3, True)
        assert (sum(number for _, number in characters["filters"]), characters["n_highway"]) == (
            2048,
            2,
        )
        assert (characters["activation"], characters["embedding"]["dim"]) == ("relu", 16)
        assert (model["dropout"], model["softmax"]) == (0.1, "sampled")
        assert inspect.signature(BilmLanguageModel).parameters["n_samples"].default == 8192
        assert trainer["num_epochs"] == 10
        # bilm-tf uses 0.2, 1.0 and 10.0 for a gradient that is 20 times as large as ours.
        optimizer = trainer["optimizer"]
        assert (optimizer["type"], optimizer["lr"]) == ("adagrad", 0.2)
        assert optimizer["initial_accumulator_value"] == pytest.approx(1.0 / 20**2)
        assert trainer["grad_norm"] == pytest.approx(10.0 / 20)
        assert "learning_rate_scheduler" not in trainer
        assert config["data_loader"]["max_tokens_per_batch"] == 3 * 128 * 20

    def test_adagrad_takes_the_steps_of_bilm_tf(self, environment):
        """bilm-tf's gradients are 20 times as large."""
        trainer = evaluated(TRAINING_CONFIGS / "bilm_original.jsonnet")["trainer"]
        ours = {key: value for key, value in trainer["optimizer"].items() if key != "type"}
        theirs = {"lr": 0.2, "initial_accumulator_value": 1.0}
        gradients = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
        ends = []
        for options, scale, norm in ((ours, 1, trainer["grad_norm"]), (theirs, 20, 10.0)):
            weight = torch.nn.Parameter(torch.zeros(7))
            optimizer = torch.optim.Adagrad([weight], **options)
            for gradient in gradients * 0.2:
                weight.grad = gradient * scale
                torch.nn.utils.clip_grad_norm_([weight], norm)
                optimizer.step()
            ends.append(weight.detach())
        torch.testing.assert_close(*ends)

    def test_the_small_config_has_the_shape_of_the_included_bilm(self, environment):
        options = evaluated(TRAINING_CONFIGS / "bilm.jsonnet")["model"]["options"]
        published = evaluated(TRAINING_CONFIGS / "bilm_finetune.jsonnet")["model"]["options"]
        assert published["lstm"]["dim"] == 32, "the tiny biLM of the tests"
        environment.delenv("ELMO_TASKS_BILM")
        published = evaluated(TRAINING_CONFIGS / "bilm_finetune.jsonnet")["model"]["options"]
        assert differences(options, published) <= {"lstm.cell_clip", "lstm.proj_clip"}

    def test_word_list_and_softmax_are_arguments(self, environment, tmp_path):
        arguments = "word_list='vocab.txt', softmax='full', epochs=3"
        config = evaluated_text(
            tmp_path, f"(import '{TRAINING_CONFIGS}/lib/bilm.libsonnet')({arguments})"
        )
        expected = {"vocabulary", "model.softmax", "trainer.num_epochs"}
        published = evaluated(TRAINING_CONFIGS / "bilm.jsonnet")
        found = differences(published, config)
        assert {
            key if not key.startswith("vocabulary.") else "vocabulary" for key in found
        } == expected
        assert config["vocabulary"] == {"type": "elmo_lm_from_file", "path": "vocab.txt"}


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", TRAINED_BILMS)
    def test_a_published_bilm_config_trains_a_self_contained_archive(
        self, environment, command, tmp_path, fixtures_root, name, capsys
    ):
        """The text and biLM are deleted before the archive is used."""
        text, bilm, run = (tmp_path / folder for folder in ("lm", "bilm", "run"))
        shutil.copytree(fixtures_root / "lm", text)
        shutil.copytree(TINY_BILM, bilm)
        environment.setenv("ELMO_TASKS_DATA", str(tmp_path))
        environment.setenv("ELMO_TASKS_BILM", str(bilm))
        small = {
            f"model.options.lstm.{key}": value
            for key, value in (("dim", 32), ("projection_dim", 8))
        }
        overrides = {"trainer.num_epochs": 1, **(small if name == "bilm" else {})}
        config = TRAINING_CONFIGS / f"{name}.jsonnet"
        command("train", config, "-s", run, "-o", json.dumps(overrides))
        metrics = json.loads((run / "metrics.json").read_text())
        n_words = len((run / "vocabulary" / "lm.txt").read_text().splitlines())
        assert 1.0 < metrics["validation_perplexity"] < 2 * n_words
        if name == "bilm_finetune":
            before = json.loads((run / "metrics_before.json").read_text())["perplexity"]
            assert (
                f"{before:.2f} before, {metrics['best_validation_perplexity']:.2f} after"
                in capsys.readouterr().out
            )
        if name == "bilm_softmax":
            command("elmo-export", run / "model.tar.gz", tmp_path / "exported")
            start, exported = (
                Bilm.from_files(folder / "options.json", folder / "weights.hdf5")
                for folder in (bilm, tmp_path / "exported")
            )
            for key, weight in start.state_dict().items():
                assert torch.equal(exported.state_dict()[key], weight), key
        dev = shutil.copy(text / "dev.txt", tmp_path / "dev.txt")
        for folder in (text, bilm):
            shutil.rmtree(folder)
        output = tmp_path / "evaluated.json"
        command("evaluate", run / "model.tar.gz", dev, "--output-file", output)
        for key in (
            "perplexity",
            "forward_perplexity",
            "backward_perplexity",
            "unknown_share",
            "loss",
        ):
            value = json.loads(output.read_text())[key]
            assert value == pytest.approx(metrics[f"best_validation_{key}"], rel=1e-5), key


class TestWords:
    @pytest.mark.parametrize("name", ["bilm_finetune", "bilm_softmax"])
    def test_only_fine_tuning_uses_the_word_list_of_the_bilm(self, environment, tmp_path, name):
        shutil.copytree(TINY_BILM, tmp_path / "bilm")
        environment.setenv("ELMO_TASKS_BILM", str(tmp_path / "bilm"))
        counted = evaluated(TRAINING_CONFIGS / f"{name}.jsonnet")["vocabulary"]
        (tmp_path / "bilm" / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
        found = evaluated(TRAINING_CONFIGS / f"{name}.jsonnet")
        assert counted["type"] == "elmo_lm"
        own = {"type": "elmo_lm_from_file", "path": str(tmp_path / "bilm" / "vocab.txt")}
        assert found["vocabulary"] == (own if name == "bilm_finetune" else counted)
        assert "word_list" not in found["model"]


class TestSizes:
    def test_a_custom_size_changes_only_the_given_settings(
        self, environment, tmp_path, training_configs
    ):
        library = training_configs / "lib" / "bilm.libsonnet"
        own, small = (
            evaluated_text(tmp_path, f"(import '{library}')(size={size})")
            for size in ("{ cells: 512, projection: 64, epochs: 2 }", "'small'")
        )
        assert own["model"]["options"]["lstm"]["dim"] == 512
        assert differences(small, own) == {
            "model.options.lstm.dim",
            "model.options.lstm.projection_dim",
            "trainer.num_epochs",
        }


def evaluated_text(folder, text):
    (folder / "config.jsonnet").write_text(text)
    return evaluated(folder / "config.jsonnet")
