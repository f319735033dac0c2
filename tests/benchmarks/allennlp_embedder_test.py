"""Tests of the script that puts AllenNLP's embedder in the place of ours."""

import importlib
import json
import sys
from types import ModuleType

import pytest

from tests.paths import CHECKOUT, RUN_RESULTS


@pytest.fixture
def script(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(CHECKOUT / "benchmarks")
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    return importlib.import_module("allennlp_embedder")


def test_our_scores_are_those_of_the_plan(script, take_plan_without_data, tmp_path, monkeypatch):
    """Oracle: the file of the run; what is trained for our seconds is one epoch, and theirs has no biLM of ours."""
    trained = []

    def train(config, folder, cached=False):
        trained.append(config)
        return {"best_validation_f1-measure-overall": 0.5, "test_f1-measure-overall": 0.25}

    take_plan_without_data(script)
    monkeypatch.setattr(script, "trained", train)
    monkeypatch.setattr(script, "seconds_of_epoch", lambda folder: 7.0)
    given = ["--seeds", "1", "--results", tmp_path / "runs", "--output", tmp_path / "rows.json"]
    monkeypatch.setattr("sys.argv", ["allennlp_embedder.py", *map(str, given)])
    script.main()
    ours, theirs = json.loads((tmp_path / "rows.json").read_text())
    run = json.loads((RUN_RESULTS / "ner" / "input" / "1.json").read_text())
    assert (ours["embedder"], ours["dev"], ours["test"]) == ("ours", run["dev"], run["test"])
    assert (theirs["embedder"], theirs["dev"], theirs["test"]) == ("AllenNLP's", 50.0, 25.0)
    assert [config["trainer"]["num_epochs"] for config in trained] == [1, 14]

    rows = [ours, theirs]
    monkeypatch.setattr("sys.argv", [*sys.argv, "--first-seed", "2", "--seeds", "2"])
    script.main()
    found = json.loads((tmp_path / "rows.json").read_text())
    assert found[:2] == rows and [row["seed"] for row in found] == [1, 1, 2, 2]
    monkeypatch.setattr("sys.argv", [*sys.argv, "--first-seed", "4", "--seeds", "4"])
    with pytest.raises(SystemExit, match="must have the rows of ner of all seeds before 4"):
        script.main()
    embedders = [config["model"]["text_field_embedder"]["token_embedders"]["elmo"]["type"] for config in trained[:2]]
    assert embedders == ["elmo", "elmo_token_embedder"] and "bilm" not in trained[1]["model"]


def test_a_task_with_layer_normalisation_is_trained_without_it(script, take_plan_without_data, tmp_path, monkeypatch):
    """Oracle: the configs that are trained; the scores of ours are those of the one without, not those of the plan."""
    trained = {}

    def train(config, folder, cached=False):
        trained[folder.name] = config, cached
        return {"best_validation_accuracy": len(trained) / 10, "test_accuracy": len(trained) / 20}

    take_plan_without_data(script)
    monkeypatch.setattr(script, "trained", train)
    monkeypatch.setattr(script, "seconds_of_epoch", lambda folder: 7.0)
    given = ["--task", "snli", "--seeds", "1", "--results", tmp_path / "runs", "--output", tmp_path / "rows.json"]
    monkeypatch.setattr("sys.argv", ["allennlp_embedder.py", *map(str, given)])
    script.main()
    ours, theirs = json.loads((tmp_path / "rows.json").read_text())
    assert (ours["dev"], ours["test"], theirs["dev"], theirs["test"]) == (10, 5, 30, 15)

    assert list(trained) == ["snli-without_layer_norm-1", "snli-ours-1", "snli-allennlp-1"]
    (scored, cached), (of_plan, timed_cached), (of_allennlp, _) = trained.values()
    assert cached and not timed_cached
    elmo, planned = (c["model"]["text_field_embedder"]["token_embedders"]["elmo"] for c in (scored, of_plan))
    assert elmo == {**planned, "layer_norm": None} and planned["layer_norm"] == "token"
    assert scored["trainer"]["num_epochs"] == of_allennlp["trainer"]["num_epochs"] == 8
    assert not of_allennlp["model"]["text_field_embedder"]["token_embedders"]["elmo"]["do_layer_norm"]


def test_missing_data_is_an_error(script, tmp_path, monkeypatch):
    """Oracle: the message; the small data that ships is not that of the plan's runs."""
    monkeypatch.setattr("sys.argv", ["allennlp_embedder.py", "--results", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"error: .*ELMO_TASKS_DATA"):
        script.main()
