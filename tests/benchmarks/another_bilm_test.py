"""Tests of the script that puts another biLM into a column of Table 1."""

import importlib
import json
import re
from types import ModuleType

import pytest

from elmo_tasks.replication import Outcome, Run
from elmo_tasks.replication.train.record import mark_finished, read_record, write_record
from tests.paths import CHECKOUT, RUN_RESULTS, TINY_BILM

EARLIER = CHECKOUT / "results" / "fine_tuned" / "table1.json"


def finish(run: Run) -> None:
    """What a finished training leaves."""
    run.serialization_dir.mkdir(parents=True)
    write_record(run)
    scores = {"best_validation_accuracy": 0.5 + run.seed / 100, "test_accuracy": 0.4}
    (run.serialization_dir / "metrics.json").write_text(json.dumps(scores))
    mark_finished(run.folder)


@pytest.fixture
def script(monkeypatch) -> ModuleType:
    """The script, without data."""
    monkeypatch.syspath_prepend(CHECKOUT / "benchmarks")
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    return importlib.import_module("another_bilm")


@pytest.fixture
def trained(script, take_plan_without_data, monkeypatch) -> list[str]:
    """The names of the runs that are trained: seed 3 fails the first time."""
    names: list[str] = []

    def train(experiment, runs):
        for run in runs:
            fails = run.seed == 3 and run.name not in names
            names.append(run.name)
            if not fails:
                finish(run)
            yield Outcome(run, "ended with status 1" if fails else None)

    take_plan_without_data(script)
    monkeypatch.setattr(script, "train_runs", train)
    return names


def test_runs_stand_next_to_those_of_the_plan(script, trained, tmp_path, monkeypatch):
    """Oracle: the files of the plan's runs, and the earlier scores of another task."""
    output = tmp_path / "table1.json"
    content = json.loads(EARLIER.read_text())
    earlier = content["runs"] = [row for row in content["runs"] if row["task"] == "ner"]
    output.write_text(json.dumps(content))
    given = ["other", TINY_BILM, "--tasks", "snli", "--results", tmp_path / "runs", "--output", output]
    monkeypatch.setattr("sys.argv", ["another_bilm.py", *map(str, given)])
    with pytest.raises(SystemExit, match=r"error: snli/both-other/3 ended with status 1"):
        script.main()
    script.main()
    assert trained == [f"snli/both-other/{seed}" for seed in (1, 2, 3, 3)]

    content = json.loads(output.read_text())
    assert [row for row in content["runs"] if row["task"] == "ner"] == earlier
    found = {(row["variant"], row["seed"]): row["dev"] for row in content["runs"] if row["task"] == "snli"}
    assert found == {
        **{("both-other", seed): pytest.approx(50 + seed) for seed in (1, 2, 3)},
        **{
            (variant, seed): json.loads((RUN_RESULTS / "snli" / variant / f"{seed}.json").read_text())["dev"]
            for variant in ("baseline", "both")
            for seed in (1, 2, 3)
        },
    }
    assert "other" in content["computed"]["columns"]
    assert content["about"]["snli"]["biLM other"].startswith(f"{TINY_BILM.name} (")


def test_the_first_seeds_may_be_there(script, trained, tmp_path, monkeypatch):
    """Oracle: what is trained, and the scores that the output had."""
    output = tmp_path / "table1.json"
    given = ["other", TINY_BILM, "--tasks", "snli", "--output", output]
    monkeypatch.setattr(
        "sys.argv", ["another_bilm.py", *map(str, given), "--results", str(tmp_path / "a"), "--seeds", "1"]
    )
    script.main()
    first = json.loads(output.read_text())["runs"]
    rest = ["--results", str(tmp_path / "b"), "--first-seed", "2", "--seeds", "2"]
    monkeypatch.setattr("sys.argv", ["another_bilm.py", *map(str, given), *rest])
    script.main()
    assert trained == ["snli/both-other/1", "snli/both-other/2"]
    both = json.loads(output.read_text())["runs"]
    assert [row for row in both if row["seed"] == 1] == first
    assert {(row["variant"], row["seed"]) for row in both if row["seed"] == 2} == {
        ("baseline", 2),
        ("both", 2),
        ("both-other", 2),
    }


def test_a_column_with_settings_of_its_own(script, trained, tmp_path, monkeypatch):
    """Oracle: the config that is trained, and the settings of the plan."""
    output, runs = tmp_path / "table1.json", tmp_path / "runs"
    given = ["carried", TINY_BILM, "--tasks", "snli", "--seeds", "1", "--results", runs, "--output", output]
    overrides = ["--overrides", '{"model.bilm.stateful": true}']
    monkeypatch.setattr("sys.argv", ["another_bilm.py", *map(str, given), *overrides])
    script.main()
    record = read_record(runs / "snli" / "both-carried" / "1")
    assert record["identity"]["config"]["model"]["bilm"]["stateful"] is True
    about = json.loads(output.read_text())["about"]["snli"]
    assert about["biLM carried"].endswith(' with {"model.bilm.stateful": true}')
    of_plan = json.loads((RUN_RESULTS / "snli" / "both" / "1.json").read_text())
    assert about["overrides"] == of_plan["about"]["overrides"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ('{"trainer.num_epochs": 1}', "the plan's settings as they are, but has trainer.num_epochs"),
        ('{"model.no_such.key": 1}', r"overrides of the configs of snli must name keys that they have"),
        ("stateful", r"must be JSON, but is 'stateful'"),
        ("[1]", r"must be a JSON object, but is '\[1\]'"),
    ],
)
def test_settings_of_a_column_that_cannot_be(script, trained, tmp_path, monkeypatch, capsys, overrides, message):
    """Oracle: the message."""
    given = ["carried", TINY_BILM, "--tasks", "snli", "--results", tmp_path, "--output", tmp_path / "table1.json"]
    monkeypatch.setattr("sys.argv", ["another_bilm.py", *map(str, given), "--overrides", overrides])
    with pytest.raises(SystemExit) as caught:
        script.main()
    assert re.search(message, f"{caught.value} {capsys.readouterr().err}")
    assert trained == []


def test_the_first_seed_is_no_later_than_the_last(script, take_plan_without_data, tmp_path, monkeypatch):
    """Oracle: the message."""
    take_plan_without_data(script)
    given = ["other", TINY_BILM, "--tasks", "snli", "--output", tmp_path / "table1.json", "--first-seed", "4"]
    monkeypatch.setattr("sys.argv", ["another_bilm.py", *map(str, given)])
    with pytest.raises(SystemExit, match="error: --first-seed must be at most --seeds, 3, but is 4"):
        script.main()


def test_missing_data(script, tmp_path, monkeypatch):
    """Oracle: the message."""
    given = ["other", TINY_BILM, "--tasks", "sst", "--results", tmp_path, "--output", tmp_path / "table1.json"]
    monkeypatch.setattr("sys.argv", ["another_bilm.py", *map(str, given)])
    with pytest.raises(SystemExit, match=r"error: .*ELMO_TASKS_DATA"):
        script.main()
