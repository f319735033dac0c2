import json
import shutil
from collections.abc import Callable
from glob import glob
from pathlib import Path
from typing import Any

import pytest
from allennlp.common.checks import ConfigurationError

from tests.paths import TINY_BILM, TRAINING_CONFIGS
from tests.task_models import TASKS
from tests.training_configs.configs import PLACES, PUBLISHED, at, differences, evaluated


def daily(*names: str, suffix: str = "") -> list[Any]:
    """The tasks as parameters of a test; those that are not named are tested weekly."""
    parameters = []
    for task in TASKS:
        marks = [] if task in names else [pytest.mark.weekly]
        parameters.append(pytest.param(task + suffix, marks=marks))
    return parameters


Called = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def called(environment, tmp_path) -> Called:
    """
    The configs that calls of a template return: `called("ner", "elmo_at=[]", "elmo_at=['input']")`.
    """

    def call(task: str, *arguments: str) -> list[dict[str, Any]]:
        template = TRAINING_CONFIGS / "lib" / f"{task}.libsonnet"
        calls = ", ".join(f"template({argument})" for argument in arguments)
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"local template = import '{template}'; {{ calls: [{calls}] }}")
        return evaluated(snippet)["calls"]

    return call


class TestPublishedConfigs:
    @pytest.mark.parametrize("name", PUBLISHED)
    def test_it_can_be_evaluated_and_its_data_exist(self, environment, name):
        config = evaluated(TRAINING_CONFIGS / name)
        expected = {"dataset_reader", "train_data_path", "model", "data_loader", "trainer"}
        assert expected <= config.keys()
        for key, value in config.items():
            if key.endswith("_data_path"):
                assert glob(value)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", [*daily("ner", suffix="_elmo"), "pos_layer"])
    def test_its_archive_is_self_contained(self, environment, command, tmp_path, small_data, name):
        """The data, word vectors and biLM are deleted before the archive is used."""
        task, _, _ = name.partition("_")
        data = tmp_path / "data"
        bilm = tmp_path / "bilm"
        run = tmp_path / "run"
        kept = tmp_path / "kept"
        for folder in (task, "glove"):
            shutil.copytree(small_data / folder, data / folder)
        shutil.copytree(TINY_BILM, bilm)
        shutil.copytree(data / task, kept)
        environment.setenv("ELMO_TASKS_DATA", str(data))
        environment.setenv("ELMO_TASKS_BILM", str(bilm))
        overrides = {"trainer.num_epochs": 1}
        if task == "srl":
            overrides["model.encoder.hidden_size"] = 20
            overrides["model.encoder.num_layers"] = 2
        config = TRAINING_CONFIGS / f"{name}.jsonnet"
        command("train", config, "-s", run, "-o", json.dumps(overrides))
        dev = kept / Path(evaluated(config)["validation_data_path"]).name
        shutil.rmtree(data)
        shutil.rmtree(bilm)
        environment.delenv("ELMO_TASKS_DATA")
        environment.delenv("ELMO_TASKS_BILM")
        archive = run / "model.tar.gz"
        command("evaluate", archive, dev, "--output-file", run / "evaluated.json")
        metrics = json.loads((run / "metrics.json").read_text())
        evaluated_metrics = json.loads((run / "evaluated.json").read_text())
        for metric, value in evaluated_metrics.items():
            assert value == pytest.approx(metrics[f"best_validation_{metric}"], rel=1e-3, abs=1e-5)
        predictions = run / "predictions.jsonl"
        options = ["--silent", "--use-dataset-reader"]
        command("predict", archive, dev, "--output-file", predictions, *options)
        assert len(predictions.read_text(encoding="utf-8").splitlines()) > 1


# With ELMo at one place and at two; the others are tested weekly.
@pytest.mark.parametrize("task", daily("ner", "snli"))
class TestTemplates:
    def test_elmo_changes_only_what_it_needs(self, called, task):
        baseline = evaluated(TRAINING_CONFIGS / f"{task}.jsonnet")
        published = evaluated(TRAINING_CONFIGS / f"{task}_elmo.jsonnet")
        arguments = [f"elmo_at={elmo_at}" for elmo_at in ([], *PLACES)]
        without_elmo, *with_elmo = called(task, *arguments)
        assert without_elmo == baseline
        for elmo_at, config in zip(PLACES, with_elmo, strict=True):
            assert differences(baseline, config) == TASKS[task].keys(elmo_at)
            if elmo_at == list(TASKS[task].elmo_at):
                assert config == published
        assert list(TASKS[task].elmo_at) in PLACES

    def test_widths_follow_the_bilm_and_the_word_vectors(self, environment, called, task, tmp_path):
        options = json.loads((TINY_BILM / "options.json").read_text())
        options["lstm"]["projection_dim"] += 5
        (tmp_path / "options.json").write_text(json.dumps(options))
        environment.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
        at_input = "elmo_at=['input']"
        bilm = "{ options: import 'options.json', pretrained_file: 'x' }"
        small, with_wide_bilm = called(task, at_input, f"{at_input}, elmo={{ bilm: {bilm} }}")
        environment.setenv("ELMO_TASKS_GLOVE", "glove.6B.300d.txt")
        (with_wide_vectors,) = called(task, at_input)
        key = TASKS[task].input_width
        assert at(with_wide_bilm, key) == at(small, key) + 2 * 5
        assert at(with_wide_vectors, key) == at(small, key) + 200

    def test_settings_of_elmo_reach_every_place(self, called, task):
        at_both = f"elmo_at={PLACES[-1]}"
        settings = "{ layers: 'top', layer_norm: 'token', l2: 0.5 }"
        config, without_l2 = called(
            task, f"{at_both}, elmo={settings}", f"{at_both}, elmo={{ l2: 0 }}"
        )
        model = config["model"]
        for embedder in (model["text_field_embedder"], model["output_embedder"]):
            elmo = embedder["token_embedders"]["elmo"]
            assert elmo["layers"] == "top"
            assert elmo["layer_norm"] == "token"
        assert ["layer_weights$", {"type": "l2", "alpha": 0.5}] in model["regularizer"]["regexes"]
        assert "layer_weights$" not in json.dumps(without_l2)

    def test_a_transformer_changes_only_the_model_and_its_words(self, called, task, checkpoint):
        bert = f"elmo={{ transformer: '{checkpoint('bert')}' }}"
        elmo, transformer = called(task, f"elmo_at={PLACES[-1]}", f"elmo_at={PLACES[-1]}, {bert}")
        may_differ = tuple(TASKS[task].keys(PLACES[-1]))
        for key in differences(elmo, transformer):
            assert key.startswith(may_differ)

    @pytest.mark.parametrize(
        "arguments", ["elmo_at=['inptu']", "elmo_at=['input'], elmo={ layer: 1 }"]
    )
    def test_an_unknown_place_or_setting_is_an_error(self, called, task, arguments):
        with pytest.raises(ConfigurationError, match=r"inptu|\blayer\b"):
            called(task, arguments)


class TestPartsOfSpeech:
    @pytest.mark.parametrize(
        ("value", "layer"), [("", 1), ("0", 0), ("top", "top"), ("mix", "mix")]
    )
    def test_the_environment_chooses_the_layer(self, environment, value, layer):
        environment.setenv("ELMO_TASKS_LAYER", value)
        model = evaluated(TRAINING_CONFIGS / "pos_layer.jsonnet")["model"]
        assert model["text_field_embedder"]["token_embedders"]["elmo"]["layers"] == layer

    def test_elmo_changes_only_what_the_tagger_needs(self, environment):
        baseline = evaluated(TRAINING_CONFIGS / "pos.jsonnet")
        elmo = evaluated(TRAINING_CONFIGS / "pos_elmo.jsonnet")
        assert differences(baseline, elmo) == {
            "dataset_reader.token_indexers.elmo",
            "model.encoder.input_size",
            "model.text_field_embedder.token_embedders.elmo",
        }


def test_the_optimizer_of_a_trained_transformer_has_its_own_learning_rate(called, checkpoint):
    library = TRAINING_CONFIGS / "lib" / "transformer.libsonnet"
    arguments = f"'{checkpoint('roberta')}', lr=2e-5, warmup_steps=9"
    transformer = f"(import '{library}')({arguments})"
    for task in ("ner", "squad"):
        (config,) = called(task, f"elmo_at=['input'], elmo={{ transformer: {transformer} }}")
        optimizer = config["trainer"]["optimizer"]
        assert optimizer["type"] == "elmo_fused_adam"
        assert optimizer["parameter_groups"] == [[[r"\.transformer_model\."], {"lr": 2e-5}]]
        assert config["trainer"]["learning_rate_scheduler"] == {
            "type": "linear_with_warmup",
            "warmup_steps": 9,
        }
        indexer = config["dataset_reader"]["token_indexers"]["elmo"]
        assert indexer["tokenizer_kwargs"] == {"add_prefix_space": True}
        assert config["model"]["bilm"]["requires_grad"] is True


def test_a_config_in_any_folder_may_import_the_templates(environment, tmp_path):
    (tmp_path / "mine.jsonnet").write_text("(import 'lib/ner.libsonnet')(elmo_at=['input'])")
    assert evaluated(tmp_path / "mine.jsonnet") == evaluated(TRAINING_CONFIGS / "ner_elmo.jsonnet")
