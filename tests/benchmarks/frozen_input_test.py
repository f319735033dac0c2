"""Tests of the script that puts frozen models at ELMo's place."""

import importlib
import json
from types import ModuleType

import pytest
from allennlp.common import Params

from elmo_tasks.replication.train.record import is_locked, locked
from tests.paths import CHECKOUT, FIXTURES, TINY_BILM
from tests.training_configs.configs import differences

SCRIPTS = CHECKOUT / "benchmarks"


@pytest.fixture
def script(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.setenv("ELMO_TASKS_DATA", str(FIXTURES))
    return importlib.import_module("frozen_input")


def finished_training(script: ModuleType) -> ModuleType:
    """The module that trains."""
    return importlib.import_module(script.metrics_of.__module__)


@pytest.fixture
def run(script, checkpoint, tmp_path, monkeypatch):
    """Runs the script for two models and two seeds that the plan does not have."""
    models = [f"first={checkpoint('bert')}:first", f"bilm={TINY_BILM}"]
    given = [tmp_path / "runs", "--models", *models, "--tasks", "ner", "--seeds", "101", "102", "--results", tmp_path]
    monkeypatch.setattr("sys.argv", ["frozen_input.py", *map(str, given)])
    return script.main


@pytest.fixture
def finished(script, tmp_path, checkpoint):
    """Writes a file of results: `finished("first", 101, 40.0)`."""
    weights = {"first": checkpoint("bert") / "model.safetensors", "bilm": TINY_BILM / "weights.hdf5"}

    def write(name, seed, score, **others):
        pooling = {"first": "first", "bilm": None}[name]
        content = {"dev": score, "test": score / 2, "weights": script.sha256_of(weights[name])[:16], "pooling": pooling}
        content |= others
        script.file_of(tmp_path, "ner", name, seed).write_text(json.dumps(content))

    return write


@pytest.mark.slow
@pytest.mark.parametrize("task", ["ner", "pos", "snli", "snli_small", "sst", "sst_small"])
def test_model_and_seed_are_all_that_a_run_changes(script, checkpoint, environment, task):
    """Oracle: the configs with their defaults."""
    seeds = {"random_seed", "numpy_seed", "pytorch_seed"}
    for model, changed in ((f"a={checkpoint('bert')}:first", {"pooling", *seeds}), (f"b={TINY_BILM}", seeds)):
        frozen = script.Frozen.of(model)
        for name, value in frozen.environment(task).items():
            environment.setenv(name, value)
        plain, other = (
            Params.from_file(str(script.CONFIG), json.dumps(overrides)).as_dict(quiet=True)
            for overrides in ({}, frozen.overrides(task, 2))
        )
        found = differences(plain, other)
        assert {key.rpartition(".")[2] for key in found} == changed
        assert len(found) == len(changed)
        assert str(frozen.folder.resolve()) in json.dumps(plain)


@pytest.mark.parametrize(
    ("task", "changed"),
    [
        ("snli", {"validation_dataset_reader", "dataset_reader.max_instances"}),
        ("sst", {"dataset_reader.min_phrase_length"}),
    ],
)
def test_a_small_task_has_less_to_train_on(script, environment, task, changed):
    """Oracle: the config of the whole task; the sentences that are scored are all of them."""
    frozen = script.Frozen.of(f"b={TINY_BILM}")
    configs = []
    for name in (task, f"{task}_small"):
        for variable, value in frozen.environment(name).items():
            environment.setenv(variable, value)
        configs.append(Params.from_file(str(script.CONFIG)).as_dict(quiet=True))
    whole, small = configs
    # Of the keys of a reader that only one has, all differ.
    assert {
        ".".join(key.split(".")[: 1 if key.startswith("validation") else 2]) for key in differences(*configs)
    } == changed
    assert small["validation_dataset_reader"] == whole.get("validation_dataset_reader", whole["dataset_reader"])


@pytest.mark.parametrize("task", ["ner", "snli_small", "sst_small"])
def test_none_is_the_baseline(script, environment, task):
    """Oracle: the config of the biLM without what it adds."""
    configs = []
    for frozen in (script.Frozen.of("none"), script.Frozen.of(f"b={TINY_BILM}")):
        for variable, value in frozen.environment(task).items():
            environment.setenv(variable, value)
        configs.append(Params.from_file(str(script.CONFIG), json.dumps(frozen.overrides(task, 2))).as_dict(quiet=True))
    none, bilm = configs
    assert "bilm" not in none["model"] and "bilm" in bilm["model"]
    assert none["trainer"]["num_epochs"] == bilm["trainer"]["num_epochs"] and none["random_seed"] == 2


def test_parts_of_speech_have_no_baseline(script, tmp_path, monkeypatch, capsys):
    """Oracle: nothing is trained, and there is nothing to print."""
    given = [tmp_path / "runs", "--models", "none", "--tasks", "pos", "--seeds", "1", "--results", tmp_path]
    monkeypatch.setattr("sys.argv", ["frozen_input.py", *map(str, given)])
    monkeypatch.setattr(finished_training(script).subprocess, "run", None)
    script.main()
    assert capsys.readouterr().out == ""


def test_finished_runs_are_not_trained_again(script, run, finished, monkeypatch, capsys):
    """Oracle: means and differences by hand; no process is started."""
    for name, seed, score in (("first", 101, 40), ("first", 102, 42), ("bilm", 101, 43), ("bilm", 102, 44)):
        finished(name, seed, score)
    monkeypatch.setattr(finished_training(script).subprocess, "run", None)
    run()
    dev, test = (" ".join(line.split()) for line in capsys.readouterr().out.splitlines())
    assert dev == "ner dev first 41.00 ± 1.41 bilm 43.50 ± 0.71 bilm less first, by seed: +3.00, +2.00"
    assert test == "ner test first 20.50 ± 0.71 bilm 21.75 ± 0.35 bilm less first, by seed: +1.50, +1.00"


def test_a_run_is_trained_or_resumed_and_written(script, run, finished, monkeypatch, tmp_path, capsys):
    """Oracle: the command and the environment; the scores that the training leaves, in percent."""
    for name, seed in (("first", 101), ("first", 102), ("bilm", 101)):
        finished(name, seed, 40)
    serialized = tmp_path / "runs" / "ner-bilm-102" / "run"
    calls = []

    def train(command, check, env, pass_fds):
        assert is_locked(serialized.parent)
        calls.append((command, env["MODEL"], env["ELMO_TASKS_BILM"]))
        serialized.mkdir(parents=True, exist_ok=True)
        scores = {"best_validation_f1-measure-overall": 0.5, "test_f1-measure-overall": 0.25, "best_epoch": 3}
        (serialized / "metrics.json").write_text(json.dumps(scores))

    monkeypatch.setattr(finished_training(script).subprocess, "run", train)
    monkeypatch.setattr(script, "commit", lambda: None)
    run()
    (tmp_path / "ner-bilm-102.json").unlink()
    run()
    (tmp_path / "ner-bilm-102.json").unlink()
    (serialized / "model.tar.gz").touch()
    run()
    (first, model, bilm), (again, *_) = calls
    assert (model, bilm) == ("bilm", str(TINY_BILM.resolve()))
    assert "--recover" not in first and again == [*first, "--recover"]
    content = json.loads((tmp_path / "ner-bilm-102.json").read_text())
    assert (content["dev"], content["test"], content["best_epoch"], content["pooling"]) == (50, 25, 4, None)


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ({"weights": "0"}, "weights"),
        ({"pooling": "mean"}, "pooling"),
        ({"weights": "0", "pooling": "mean"}, "weights and pooling"),
    ],
)
def test_results_of_another_model_are_an_error(run, finished, others, what):
    """Oracle: the line names the file, what differs, and the remedy."""
    finished("first", 101, 40, **others)
    with pytest.raises(SystemExit, match=rf"ner-first-101.json is of other {what}: give the model another name"):
        run()


def test_two_scripts_do_not_train_one_run(run, tmp_path):
    """Oracle: the line, while the lock of the first run is held, as another process holds it."""
    with locked(tmp_path / "runs" / "ner-first-101"), pytest.raises(SystemExit, match="trained by another process"):
        run()


def test_a_folder_of_another_model_is_an_error(script, run, finished, checkpoint, tmp_path):
    """Oracle: the line, where the file of the results was removed, or is in another folder."""
    folder = tmp_path / "runs" / "ner-first-101"
    (folder / "run").mkdir(parents=True)
    (folder / "identity.json").write_text('{"weights": "0"}')
    for name in ("metrics.json", "model.tar.gz"):
        (folder / "run" / name).touch()
    with pytest.raises(SystemExit, match=r'ner-first-101 has another training: {"weights": "0"}; remove it'):
        run()


def test_the_data_must_be_named(run, monkeypatch, capsys):
    """Oracle: the message; a call without them would leave scores that a later one takes for those of the data."""
    monkeypatch.delenv("ELMO_TASKS_DATA")
    with pytest.raises(SystemExit):
        run()
    assert "ELMO_TASKS_DATA must name the data" in capsys.readouterr().err


def test_two_models_of_one_name_are_an_error(script, monkeypatch, tmp_path, capsys):
    """Oracle: the message."""
    models = [f"a={TINY_BILM}"] * 2
    given = [tmp_path, "--models", *models, "--tasks", "ner", "--seeds", "1", "--results", tmp_path]
    monkeypatch.setattr("sys.argv", ["frozen_input.py", *map(str, given)])
    with pytest.raises(SystemExit):
        script.main()
    assert "the names of --models must differ, but are a, a" in capsys.readouterr().err


def test_the_seconds_of_an_epoch_are_the_median_of_all_calls(script, tmp_path):
    """Oracle: by hand, from lines as AllenNLP writes them."""
    (tmp_path / "run").mkdir()
    lines = [
        f"INFO - trainer - Epoch duration: {one}\n" for one in ("0:00:10", "0:01:00.5", "1 day, 0:00:01", "0:00:11")
    ]
    (tmp_path / "run" / "out.log").write_text("".join(lines))
    assert finished_training(script).seconds_of_epoch(tmp_path) == 35.75


@pytest.mark.parametrize("argument", ["folder", "a-b={}", "a=missing", "a={}:last", "=x"])
def test_another_argument_is_an_error(script, checkpoint, argument):
    """Oracle: the message."""
    with pytest.raises(script.argparse.ArgumentTypeError, match="must be none, NAME=FOLDER, NAME=FOLDER:first or"):
        script.Frozen.of(argument.format(checkpoint("bert")))
