import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from allennlp.commands import main
from allennlp.common import Params

from elmo_tasks.data.ner_reader import read_columns

CONFIGS = Path(__file__).resolve().parents[1] / "training_configs"
PUBLISHED = sorted(str(path.relative_to(CONFIGS)) for path in CONFIGS.rglob("*.jsonnet"))
# Task and its template.
TASKS = ["ner"]
PLACES = [["input"], ["output"], ["input", "output"]]

# What ELMo needs in a config, wherever it is.
ALWAYS = {
    "dataset_reader.token_indexers.elmo",
    "model.bilm",
    "model.text_field_embedder.token_embedders.elmo",
    "model.regularizer",
    "trainer.checkpointer",
}
AT = {"input": {"model.encoders.0.input_size"}, "output": {"model.output_embedder"}}


def evaluated(path: Path) -> dict[str, Any]:
    return Params.from_file(path).as_dict(quiet=True)


def differences(one: Any, other: Any, key: str = "") -> set[str]:
    """The keys at which two configs part, each as far down as both have it."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one, other = (dict(enumerate(values)) for values in (one, other))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return set() if one == other and type(one) is type(other) else {key}
    found = set()
    for name in {**one, **other}:
        path = f"{key}.{name}".removeprefix(".")
        found |= differences(one[name], other[name], path) if name in one and name in other else {path}
    return found


def run_allennlp(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, arguments)])
    main()


class TestPublishedConfigs:
    def test_these_are_published(self):
        """Oracle: the list by hand: a new config stands here, and is then tested with the others."""
        assert PUBLISHED == ["ner.jsonnet", "ner_elmo.jsonnet"]

    @pytest.mark.parametrize("name", PUBLISHED)
    def test_it_can_be_evaluated(self, environment, name):
        """Oracle: the parts that `allennlp train` asks for; the files of the data are there."""
        config = evaluated(CONFIGS / name)
        assert {"dataset_reader", "train_data_path", "model", "data_loader", "trainer"} <= set(config)
        for part in ("train", "validation", "test"):
            assert Path(config[f"{part}_data_path"]).is_file()

    @pytest.mark.parametrize("name", PUBLISHED)
    def test_it_repeats_nothing(self, name):
        """Oracle: no number, address, device or seed stands in a variant, but in comments."""
        content = (CONFIGS / name).read_text(encoding="utf-8")
        assert not re.search(r"\w+://", content)
        code = re.sub(r"//.*|/\*(?s:.*?)\*/", "", content)
        assert not re.search(r"(?<!\w)[-+.]?\d|cuda|seed", code)
        assert len(code.splitlines()) <= 20

    @pytest.mark.parametrize("task", TASKS)
    def test_a_variant_differs_from_its_baseline_only_where_elmo_needs_it(self, environment, task):
        """Oracle: the list of keys."""
        baseline, variant = (evaluated(CONFIGS / f"{task}{suffix}.jsonnet") for suffix in ("", "_elmo"))
        assert differences(baseline, variant) == ALWAYS | AT["input"]

    def test_every_one_belongs_to_a_task_that_is_trained_below(self):
        """Oracle: the tasks by hand."""
        assert {name.removesuffix(".jsonnet").removesuffix("_elmo") for name in PUBLISHED} == set(TASKS)


class TestTemplates:
    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize("elmo_at", PLACES, ids="-".join)
    def test_elmo_changes_only_what_it_needs(self, environment, tmp_path, task, elmo_at):
        """Oracle: the list of keys: the width of the lowest encoder with ELMo at the input, and so on."""
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"(import '{CONFIGS}/lib/{task}.libsonnet')(elmo_at={elmo_at})")
        expected = ALWAYS.union(*(AT[place] for place in elmo_at))
        assert differences(evaluated(CONFIGS / f"{task}.jsonnet"), evaluated(snippet)) == expected

    @pytest.mark.parametrize("task", TASKS)
    def test_without_elmo_it_is_the_baseline(self, environment, tmp_path, task):
        """Oracle: the published baseline."""
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"(import '{CONFIGS}/lib/{task}.libsonnet')(elmo_at=[])")
        assert evaluated(snippet) == evaluated(CONFIGS / f"{task}.jsonnet")

    @pytest.mark.parametrize("task", TASKS)
    def test_widths_follow_the_bilm_and_the_word_vectors(self, environment, tmp_path, task, fixtures_root):
        """Oracle: the difference of the widths by hand: two directions, and the numbers in the files' names."""
        widths, dims = [], []
        for bilm in ("bilm_tiny", "bilm"):
            environment.setenv("ELMO_TASKS_BILM", str(fixtures_root / bilm))
            config = evaluated(CONFIGS / f"{task}_elmo.jsonnet")
            widths.append(config["model"]["encoders"][0]["input_size"])
            options = json.loads((fixtures_root / bilm / "options.json").read_text())
            dims.append(options["lstm"]["projection_dim"])
        assert dims[0] != dims[1]
        assert widths[1] - widths[0] == 2 * (dims[1] - dims[0])
        environment.setenv("ELMO_TASKS_GLOVE", "glove.6B.300d.txt")
        config = evaluated(CONFIGS / f"{task}_elmo.jsonnet")
        assert config["model"]["encoders"][0]["input_size"] == widths[1] + 200
        assert config["model"]["text_field_embedder"]["token_embedders"]["tokens"]["embedding_dim"] == 300

    @pytest.mark.parametrize("task", TASKS)
    def test_an_unknown_place_is_an_error(self, environment, tmp_path, task):
        """Oracle: the message says what there is and what was given."""
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"(import '{CONFIGS}/lib/{task}.libsonnet')(elmo_at=['inptu'])")
        with pytest.raises(RuntimeError, match=r'elmo_at must name some of \["input", "output"\].*"inptu"'):
            evaluated(snippet)

    @pytest.mark.parametrize("task", TASKS)
    def test_arguments_reach_every_place(self, environment, tmp_path, task):
        """Oracle: by hand: layers and norm at both places, lambda in the regularizer; none with lambda 0."""
        snippet = tmp_path / "variant.jsonnet"
        call = f"(import '{CONFIGS}/lib/{task}.libsonnet')"
        snippet.write_text(f"{call}(elmo_at={PLACES[-1]}, elmo_layers='top', elmo_layer_norm='token', elmo_l2=0.5)")
        model = evaluated(snippet)["model"]
        for embedder in (model["text_field_embedder"], model["output_embedder"]):
            elmo = embedder["token_embedders"]["elmo"]
            assert (elmo["layers"], elmo["layer_norm"]) == ("top", "token")
        assert model["regularizer"] == {"regexes": [["layer_weights$", {"type": "l2", "alpha": 0.5}]]}
        snippet.write_text(f"{call}(elmo_at={PLACES[-1]}, elmo_l2=0)")
        assert "regularizer" not in evaluated(snippet)["model"]


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", [name for name in PUBLISHED if name.startswith("ner")])
    def test_a_published_ner_config_trains_and_its_archive_stands_alone(
        self, environment, monkeypatch, tmp_path, small_ner, fixtures_root, name
    ):
        """
        Oracle: AllenNLP's commands, on the config as it is but for one epoch: the archive predicts though data, word
        vectors and biLM are gone; a file in columns and its words in JSON lines have the same predictions.
        """
        data, bilm, run = (tmp_path / folder for folder in ("data", "bilm", "run"))
        shutil.copytree(small_ner, data)
        shutil.copytree(fixtures_root / "bilm_tiny", bilm)
        monkeypatch.setenv("ELMO_TASKS_DATA", str(data))
        monkeypatch.setenv("ELMO_TASKS_BILM", str(bilm))
        columns = shutil.copy(data / "ner" / "test.txt", tmp_path / "test.txt")
        run_allennlp(monkeypatch, "train", CONFIGS / name, "-s", run, "-o", '{"trainer.num_epochs": 1}')
        metrics = json.loads((run / "metrics.json").read_text())
        assert 0.0 <= metrics["validation_f1-measure-overall"] <= 1.0
        assert (run / "frozen_weights.th").is_file() is ("elmo" in name)
        for folder in (data, bilm):
            shutil.rmtree(folder)
        monkeypatch.delenv("ELMO_TASKS_DATA")
        monkeypatch.delenv("ELMO_TASKS_BILM")

        sentences = [words for words, _ in read_columns(columns)]
        assert len(sentences) > 20
        lines = tmp_path / "test.jsonl"
        lines.write_text("".join(json.dumps({"words": words}) + "\n" for words in sentences))
        predictions = []
        for source, *options in ((columns, "--use-dataset-reader"), (lines, "--batch-size", "7")):
            output = tmp_path / "predictions.jsonl"
            arguments = ["predict", run / "model.tar.gz", source, "--output-file", output, "--silent", *options]
            run_allennlp(monkeypatch, *arguments)
            predictions.append([json.loads(line) for line in output.read_text().splitlines()])
        from_columns, from_lines = predictions
        assert [prediction["words"] for prediction in from_columns] == sentences
        assert [prediction["tags"] for prediction in from_columns] == [p["tags"] for p in from_lines]
        for words, prediction in zip(sentences, from_columns, strict=True):
            assert len(prediction["tags"]) == len(words)
            assert all(0.0 <= span["score"] <= 1.0 for span in prediction["spans"])
