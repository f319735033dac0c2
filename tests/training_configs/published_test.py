import json
import shutil
from glob import glob
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from tests.paths import TINY_BILM, TRAINING_CONFIGS
from tests.task_models import TASKS
from tests.training_configs.configs import PLACES, PUBLISHED, at, differences, evaluated

# Names run daily, and the other tasks in a week.
SELF_CONTAINED = [
    pytest.param(f"{task}_elmo", marks=[] if task == "ner" else pytest.mark.weekly)
    for task in TASKS
]
SELF_CONTAINED.append("pos_layer")


@pytest.fixture
def called(environment, tmp_path):
    """
    The configs that calls of a template return: `called("ner", "elmo_at=[]", "elmo_at=['input']")`.
    """

    def call(task, *arguments):
        snippet = tmp_path / "variant.jsonnet"
        calls = ", ".join(f"template({each})" for each in arguments)
        snippet.write_text(
            f"local template = import '{TRAINING_CONFIGS}/lib/{task}.libsonnet'; {{ calls: [{calls}] }}"
        )
        return evaluated(snippet)["calls"]

    return call


class TestPublishedConfigs:
    @pytest.mark.parametrize("name", PUBLISHED)
    def test_it_can_be_evaluated_and_its_data_exist(self, environment, name):
        config = evaluated(TRAINING_CONFIGS / name)
        assert {"dataset_reader", "train_data_path", "model", "data_loader", "trainer"} <= set(
            config
        )
        for key in config:
            if key.endswith("_data_path"):
                assert glob(config[key])

    @pytest.mark.slow
    @pytest.mark.parametrize("name", SELF_CONTAINED)
    def test_its_archive_is_self_contained(self, environment, command, tmp_path, small_data, name):
        """The data, word vectors and biLM are deleted before the archive is used."""
        task = name.partition("_")[0]
        data, bilm, run, kept = (tmp_path / part for part in ("data", "bilm", "run", "kept"))
        for part in (task, "glove"):
            shutil.copytree(small_data / part, data / part)
        shutil.copytree(TINY_BILM, bilm)
        shutil.copytree(data / task, kept)
        environment.setenv("ELMO_TASKS_DATA", str(data))
        environment.setenv("ELMO_TASKS_BILM", str(bilm))
        small = (
            {"model.encoder.hidden_size": 20, "model.encoder.num_layers": 2}
            if task == "srl"
            else {}
        )
        config = TRAINING_CONFIGS / f"{name}.jsonnet"
        command("train", config, "-s", run, "-o", json.dumps({"trainer.num_epochs": 1, **small}))
        dev = kept / Path(evaluated(config)["validation_data_path"]).name
        for path in (data, bilm):
            shutil.rmtree(path)
        environment.delenv("ELMO_TASKS_DATA")
        environment.delenv("ELMO_TASKS_BILM")
        archive, predictions = run / "model.tar.gz", run / "predictions.jsonl"
        command("evaluate", archive, dev, "--output-file", run / "again.json")
        before, again = (
            json.loads((run / file).read_text()) for file in ("metrics.json", "again.json")
        )
        for metric, value in again.items():
            assert value == pytest.approx(before[f"best_validation_{metric}"], rel=1e-3, abs=1e-5)
        command(
            "predict",
            archive,
            dev,
            "--output-file",
            predictions,
            "--silent",
            "--use-dataset-reader",
        )
        assert len(predictions.read_text(encoding="utf-8").splitlines()) > 1


# With ELMo at one place and at two; the others are tested weekly.
@pytest.mark.parametrize(
    "task",
    [
        pytest.param(task, marks=[] if task in ("ner", "snli") else pytest.mark.weekly)
        for task in TASKS
    ],
)
class TestTemplates:
    def test_elmo_changes_only_what_it_needs(self, called, task):
        baseline = evaluated(TRAINING_CONFIGS / f"{task}.jsonnet")
        none, *with_elmo = called(task, *(f"elmo_at={elmo_at}" for elmo_at in ([], *PLACES)))
        assert none == baseline
        assert (
            evaluated(TRAINING_CONFIGS / f"{task}_elmo.jsonnet")
            == with_elmo[PLACES.index([*TASKS[task].elmo_at])]
        )
        for elmo_at, config in zip(PLACES, with_elmo, strict=True):
            assert differences(baseline, config) == TASKS[task].keys(elmo_at)

    def test_widths_follow_the_bilm_and_the_word_vectors(self, environment, called, task, tmp_path):
        options = json.loads((TINY_BILM / "options.json").read_text())
        options["lstm"]["projection_dim"] += 5
        (tmp_path / "options.json").write_text(json.dumps(options))
        environment.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
        with_bilm = "elmo_at=['input'], elmo={ bilm: { options: import 'options.json', pretrained_file: 'x' } }"
        small, wide = called(task, "elmo_at=['input']", with_bilm)
        environment.setenv("ELMO_TASKS_GLOVE", "glove.6B.300d.txt")
        configs = small, wide, *called(task, "elmo_at=['input']")
        width, *others = (at(config, TASKS[task].input_width) for config in configs)
        assert others == [width + 2 * 5, width + 200]

    def test_settings_of_elmo_reach_every_place(self, called, task):
        settings = ("{ layers: 'top', layer_norm: 'token', l2: 0.5 }", "{ l2: 0 }")
        config, without_l2 = called(
            task, *(f"elmo_at={PLACES[-1]}, elmo={each}" for each in settings)
        )
        model = config["model"]
        for embedder in (model["text_field_embedder"], model["output_embedder"]):
            elmo = embedder["token_embedders"]["elmo"]
            assert (elmo["layers"], elmo["layer_norm"]) == ("top", "token")
        assert ["layer_weights$", {"type": "l2", "alpha": 0.5}] in model["regularizer"]["regexes"]
        assert "layer_weights$" not in json.dumps(without_l2)

    def test_a_transformer_changes_only_the_model_and_its_words(self, called, task, checkpoint):
        bert = f"elmo={{ transformer: '{checkpoint('bert')}' }}"
        elmo, transformer = called(task, f"elmo_at={PLACES[-1]}", f"elmo_at={PLACES[-1]}, {bert}")
        allowed = TASKS[task].keys(PLACES[-1])
        assert {
            key for key in differences(elmo, transformer) if not any(map(key.startswith, allowed))
        } == set()

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
        baseline, elmo = (
            evaluated(TRAINING_CONFIGS / f"{name}.jsonnet") for name in ("pos", "pos_elmo")
        )
        assert differences(baseline, elmo) == {
            "dataset_reader.token_indexers.elmo",
            "model.encoder.input_size",
            "model.text_field_embedder.token_embedders.elmo",
        }


def test_the_optimizer_of_a_trained_transformer_has_its_own_learning_rate(called, checkpoint):
    made = f"(import '{TRAINING_CONFIGS}/lib/transformer.libsonnet')('{checkpoint('roberta')}', lr=2e-5, warmup_steps=9)"
    for task in ("ner", "squad"):
        (config,) = called(task, f"elmo_at=['input'], elmo={{ transformer: {made} }}")
        assert config["trainer"]["optimizer"]["type"] == "elmo_fused_adam"
        assert config["trainer"]["optimizer"]["parameter_groups"] == [
            [[r"\.transformer_model\."], {"lr": 2e-5}]
        ]
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
