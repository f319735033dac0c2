import json
import re
from glob import glob
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from tests.paths import TINY_BILM, TRAINING_CONFIGS, WORDS_BILM
from tests.task_models import TASKS
from tests.training_configs.configs import PARTS_OF_SPEECH, PLACES, PUBLISHED, at, differences, evaluated


class TestPublishedConfigs:
    def test_these_are_published(self):
        """Oracle: the biLMs by hand, and two configs for each row of the table of tasks."""
        others = ["bilm", "bilm_finetune", "bilm_original", "bilm_softmax", "bilm_student", *PARTS_OF_SPEECH]
        names = [*others, *(f"{task}{suffix}" for task in TASKS for suffix in ("", "_elmo"))]
        assert sorted(f"{name}.jsonnet" for name in names) == PUBLISHED

    @pytest.mark.parametrize("name", PUBLISHED)
    def test_it_can_be_evaluated(self, environment, name):
        """Oracle: the parts that `allennlp train` asks for; the files of the data are there."""
        config = evaluated(TRAINING_CONFIGS / name)
        assert {"dataset_reader", "train_data_path", "model", "data_loader", "trainer"} <= set(config)
        name = name.removesuffix(".jsonnet")
        task = name.removesuffix("_elmo")
        parts: tuple[str, ...] = ("train", "validation") + ("test",) * (name in PARTS_OF_SPEECH)
        if task in TASKS:
            parts = TASKS[task].parts
        assert {key for key in config if key.endswith("_data_path")} == {f"{part}_data_path" for part in parts}
        for part in parts:
            (path,) = glob(config[f"{part}_data_path"])
            # SRL's are folders.
            assert Path(path).exists()

    @pytest.mark.parametrize("name", PUBLISHED)
    def test_it_repeats_nothing(self, name):
        """Oracle: no number, address, device or seed in a variant, except in comments."""
        content = (TRAINING_CONFIGS / name).read_text(encoding="utf-8")
        assert not re.search(r"\w+://", content)
        code = re.sub(r"//.*|/\*(?s:.*?)\*/", "", content)
        assert not re.search(r"(?<!\w)[-+.]?\d|cuda|seed", code)
        assert len(code.splitlines()) <= 20

    @pytest.mark.parametrize("task", TASKS)
    def test_a_variant_differs_from_its_baseline_only_where_elmo_needs_it(self, environment, task):
        """Oracle: the list of keys."""
        baseline, variant = (evaluated(TRAINING_CONFIGS / f"{task}{suffix}.jsonnet") for suffix in ("", "_elmo"))
        assert differences(baseline, variant) == TASKS[task].keys(TASKS[task].elmo_at)


class TestTemplates:
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("elmo_at", PLACES, ids="-".join)
    def test_elmo_changes_only_what_it_needs(self, environment, tmp_path, task, elmo_at):
        """Oracle: the list of keys: the width of the lowest encoder with ELMo at the input, and so on."""
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"(import '{TRAINING_CONFIGS}/lib/{task}.libsonnet')(elmo_at={elmo_at})")
        found = differences(evaluated(TRAINING_CONFIGS / f"{task}.jsonnet"), evaluated(snippet))
        assert found == TASKS[task].keys(elmo_at)

    @pytest.mark.parametrize("task", TASKS)
    def test_without_elmo_it_is_the_baseline(self, environment, tmp_path, task):
        """Oracle: the published baseline."""
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"(import '{TRAINING_CONFIGS}/lib/{task}.libsonnet')(elmo_at=[])")
        assert evaluated(snippet) == evaluated(TRAINING_CONFIGS / f"{task}.jsonnet")

    @pytest.mark.parametrize("task", TASKS)
    def test_widths_follow_the_bilm_and_the_word_vectors(self, environment, tmp_path, task, fixtures_root):
        """Oracle: the difference of the widths by hand: two directions, and the numbers in the files' names."""
        widths, dims = [], []
        for bilm in (TINY_BILM, WORDS_BILM):
            environment.setenv("ELMO_TASKS_BILM", str(bilm))
            config = evaluated(TRAINING_CONFIGS / f"{task}_elmo.jsonnet")
            widths.append(at(config, TASKS[task].input_width))
            options = json.loads((bilm / "options.json").read_text())
            dims.append(options["lstm"]["projection_dim"])
        assert dims[0] != dims[1]
        assert widths[1] - widths[0] == 2 * (dims[1] - dims[0])
        environment.setenv("ELMO_TASKS_GLOVE", "glove.6B.300d.txt")
        config = evaluated(TRAINING_CONFIGS / f"{task}_elmo.jsonnet")
        assert at(config, TASKS[task].input_width) == widths[1] + 200
        assert config["model"]["text_field_embedder"]["token_embedders"]["tokens"]["embedding_dim"] == 300

    @pytest.mark.parametrize("task", TASKS)
    def test_an_unknown_place_is_an_error(self, environment, tmp_path, task):
        """Oracle: the message says the rule and the value."""
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"(import '{TRAINING_CONFIGS}/lib/{task}.libsonnet')(elmo_at=['inptu'])")
        with pytest.raises(ConfigurationError, match=r'elmo_at must name some of \["input", "output"\].*"inptu"'):
            evaluated(snippet)

    def test_a_dropout_without_its_places_is_an_error(self, environment, tmp_path):
        """Oracle: the message says the form and the value."""
        snippet = tmp_path / "variant.jsonnet"
        call = f"(import '{TRAINING_CONFIGS}/lib/snli.libsonnet')(elmo_at=['input', 'output'], elmo_dropout=%s)"
        for dropout, shown in (("[0.5, 0.25]", r"\[0\.5, 0\.25\]"), ("{input: 0.5}", r'{"input": 0\.5}')):
            snippet.write_text(call % dropout)
            with pytest.raises(ConfigurationError, match=rf"elmo_dropout must have a number for each .*but is {shown}"):
                evaluated(snippet)

    @pytest.mark.parametrize("task", TASKS)
    def test_arguments_reach_every_place(self, environment, tmp_path, task):
        """Oracle: by hand: layers and norm at both places, lambda in the regularizer; not with lambda 0."""
        snippet = tmp_path / "variant.jsonnet"
        call = f"(import '{TRAINING_CONFIGS}/lib/{task}.libsonnet')"
        snippet.write_text(f"{call}(elmo_at={PLACES[-1]}, elmo_layers='top', elmo_layer_norm='token', elmo_l2=0.5)")
        model = evaluated(snippet)["model"]
        for embedder in (model["text_field_embedder"], model["output_embedder"]):
            elmo = embedder["token_embedders"]["elmo"]
            assert (elmo["layers"], elmo["layer_norm"]) == ("top", "token")
        assert ["layer_weights$", {"type": "l2", "alpha": 0.5}] in model["regularizer"]["regexes"]
        snippet.write_text(f"{call}(elmo_at={PLACES[-1]}, elmo_l2=0)")
        model = evaluated(snippet)["model"]
        assert ("regularizer" in model) is ("model.regularizer" in TASKS[task].others)
        assert "layer_weights$" not in json.dumps(model)
