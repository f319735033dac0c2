import json
import shutil

import pytest
from allennlp.common.checks import ConfigurationError

from tests.paths import TRAINING_CONFIGS
from tests.task_models import TASKS
from tests.training_configs.configs import at, differences, evaluated

_LIBRARY = TRAINING_CONFIGS / "lib"


def call(task, folder, arguments="elmo_at=['input', 'output']", of_transformer=""):
    return (
        f"local bert = import '{_LIBRARY}/transformer.libsonnet';\n"
        f"(import '{_LIBRARY}/{task}.libsonnet')({arguments}, contextual=bert('{folder}'{of_transformer}))\n"
    )


@pytest.fixture
def made(environment, tmp_path, checkpoint):
    """The config of a task with a transformer: `made("ner", ", lr=1e-5")`."""

    def make(task, of_transformer="", family="bert", arguments="elmo_at=['input', 'output']"):
        path = tmp_path / "config.jsonnet"
        path.write_text(call(task, checkpoint(family), arguments, of_transformer))
        return evaluated(path)

    return make


class TestTemplates:
    @pytest.mark.parametrize("task", TASKS)
    def test_it_differs_from_elmo_only_in_the_model_and_its_words(self, environment, tmp_path, checkpoint, made, task):
        """Oracle: the keys of the table of tasks; the width is that of the checkpoint."""
        (tmp_path / "elmo.jsonnet").write_text(f"(import '{_LIBRARY}/{task}.libsonnet')(elmo_at=['input', 'output'])")
        elmo, transformer = evaluated(tmp_path / "elmo.jsonnet"), made(task)
        found = differences(elmo, transformer)
        allowed = TASKS[task].keys(["input", "output"]) | {"model.bilm"}
        assert {key for key in found if not any(key.startswith(part) for part in allowed)} == set()
        name = str(checkpoint("bert"))
        assert transformer["model"]["bilm"] == {"type": "transformer", "model_name": name, "pooling": "mean"}
        for reader in TASKS[task].readers:
            assert transformer[reader]["token_indexers"]["elmo"] == {"type": "elmo_transformer", "model_name": name}
        # The tiny biLM has two directions of 8 units, as many as the checkpoint.
        narrow = 2 * elmo["model"]["bilm"]["options"]["lstm"]["projection_dim"]
        assert at(transformer, TASKS[task].input_width) - at(elmo, TASKS[task].input_width) == 16 - narrow

    @pytest.mark.parametrize("task", ["ner", "pos"])
    @pytest.mark.parametrize("given", ["(import 'transformer.libsonnet')", "{ model_name: 'bert' }"])
    def test_what_is_no_transformer_is_an_error(self, environment, tmp_path, task, given):
        """Oracle: the message says what to give: the call is forgotten, or the config is written by hand."""
        place = "elmo_at=['input']" if task == "ner" else "layer='mix'"
        given = given.replace("transformer.lib", f"{_LIBRARY}/transformer.lib")
        (tmp_path / "config.jsonnet").write_text(f"(import '{_LIBRARY}/{task}.libsonnet')({place}, contextual={given})")
        with pytest.raises(
            (RuntimeError, ConfigurationError), match=r"contextual must be the name of a transformer, or"
        ):
            evaluated(tmp_path / "config.jsonnet")

    def test_a_warm_up_is_not_negative(self, made):
        """Oracle: the message."""
        with pytest.raises((RuntimeError, ConfigurationError), match="warmup_steps must be at least 0, but is -3"):
            made("ner", ", lr=1e-5, warmup_steps=-3")

    def test_parts_of_speech_of_a_tagger_may_have_it_at_the_input(self, made, checkpoint):
        """Oracle: by hand: the model's only embedder has the transformer."""
        config = made("pos_tagger", arguments="elmo_at=['input']")
        embedders = config["model"]["text_field_embedder"]["token_embedders"]
        assert embedders["elmo"]["bilm"]["model_name"] == str(checkpoint("bert"))
        without = made("pos_tagger", arguments="elmo_at=[]")
        widths = [each["model"]["encoder"]["input_size"] for each in (config, without)]
        assert widths[0] - widths[1] == 16

    def test_without_a_place_it_is_the_baseline(self, made):
        """Oracle: the published baseline, though an lr is given."""
        assert made("ner", ", lr=1", arguments="elmo_at=[]") == evaluated(TRAINING_CONFIGS / "ner.jsonnet")

    def test_a_name_is_a_frozen_transformer_with_its_defaults(self, environment, tmp_path, made, checkpoint):
        """Oracle: the call by hand."""
        for task, arguments in (("ner", "elmo_at=['input', 'output']"), ("pos", "layer=0")):
            expected = made(task, arguments=arguments)
            (tmp_path / "name.jsonnet").write_text(
                f"(import '{_LIBRARY}/{task}.libsonnet')({arguments}, contextual='{checkpoint('bert')}')"
            )
            assert evaluated(tmp_path / "name.jsonnet") == expected

    def test_parts_of_speech_may_come_from_a_layer_of_it(self, made, checkpoint):
        """Oracle: by hand."""
        config = made("pos", arguments="layer='mix'", of_transformer=", pooling='first'")
        embedder = config["model"]["text_field_embedder"]["token_embedders"]["elmo"]
        name = str(checkpoint("bert"))
        bilm = {"type": "transformer", "model_name": name, "pooling": "first"}
        assert embedder == {"type": "elmo", "layers": "mix", "bilm": bilm}
        assert config["model"]["encoder"]["input_dim"] == 16

    # With Adam, Adam and a schedule of its own, and Adadelta.
    @pytest.mark.parametrize("task", ["ner", "snli", "srl"])
    def test_one_that_is_trained_has_its_own_learning_rate_and_a_warm_up(self, made, task):
        """Oracle: the group by hand; the task's optimizer, but Adam where that is Adadelta."""
        baseline = evaluated(TRAINING_CONFIGS / f"{task}.jsonnet")["trainer"]
        config = made(task, ", lr=2e-5, warmup_steps=100")
        optimizer = config["trainer"]["optimizer"]
        assert optimizer.pop("parameter_groups") == [[[r"\.transformer\.network\."], {"lr": 2e-5}]]
        adam = {"type": "elmo_fused_adam", "lr": 0.001}
        assert optimizer == (adam if baseline["optimizer"]["type"].endswith("adadelta") else baseline["optimizer"])
        scheduler = {"type": "linear_with_warmup", "warmup_steps": 100}
        assert config["trainer"]["learning_rate_scheduler"] == scheduler
        assert config["model"]["bilm"]["requires_grad"] is True

    def test_a_warm_up_of_a_frozen_one_is_an_error(self, made):
        """Oracle: the message."""
        with pytest.raises(ConfigurationError, match="warmup_steps needs an lr"):
            made("ner", ", warmup_steps=100")

    def test_a_checkpoint_that_is_not_there_is_an_error(self, environment, tmp_path):
        """Oracle: the message, in one line."""
        (tmp_path / "config.jsonnet").write_text(call("ner", "/no/such/folder"))
        with pytest.raises(ConfigurationError, match="the transformer '/no/such/folder' must have") as error:
            evaluated(tmp_path / "config.jsonnet")
        assert "\n" not in str(error.value)


@pytest.mark.slow
class TestTraining:
    def test_its_archive_stands_alone(self, environment, command, tmp_path, small_ner, checkpoint, capsys):
        """
        Oracle: AllenNLP's commands: a fine-tuned transformer with a warm-up, one epoch; the archive predicts though the
        checkpoint is deleted, and its evaluation is that of the training.
        """
        folder = shutil.copytree(checkpoint("roberta"), tmp_path / "roberta")
        config = tmp_path / "config.jsonnet"
        config.write_text(call("ner", folder, "elmo_at=['input']", ", lr=1e-3, warmup_steps=2"))
        environment.setenv("ELMO_TASKS_DATA", str(small_ner))
        environment.setenv("HF_HUB_OFFLINE", "1")
        run = tmp_path / "run"
        command("train", config, "-s", run, "-o", json.dumps({"trainer.num_epochs": 1}))
        assert "The transformer has learnt: input: layers 0." in capsys.readouterr().out
        shutil.rmtree(folder)
        dev = small_ner / "ner" / "dev.txt"
        command("evaluate", run / "model.tar.gz", dev, "--output-file", tmp_path / "metrics.json")
        metrics = json.loads((run / "metrics.json").read_text())
        evaluated_again = json.loads((tmp_path / "metrics.json").read_text())
        assert evaluated_again["loss"] == pytest.approx(metrics["best_validation_loss"], rel=1e-4)
        (tmp_path / "in.jsonl").write_text(json.dumps({"sentence": "She saw London ."}))
        command("predict", run / "model.tar.gz", tmp_path / "in.jsonl", "--output-file", tmp_path / "out", "--silent")
        prediction = json.loads((tmp_path / "out").read_text())
        assert len(prediction["tags"]) == len(prediction["words"]) == 4
