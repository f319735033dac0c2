"""Tests of the script that puts a transformer at ELMo's place."""

import importlib.util
import json
from types import ModuleType

import pytest
from allennlp.common import Params

from tests.paths import CHECKOUT
from tests.training_configs.configs import differences

SCRIPT = CHECKOUT / "benchmarks" / "transformer_input.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("transformer_input", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def finished(tmp_path, checkpoint):
    """Writes a file of results: `finished("ner", "mean", 1, 40.0, weights)`."""
    folder = tmp_path / "results" / checkpoint("bert").name

    def write(task, pooling, seed, score, weights):
        folder.mkdir(parents=True, exist_ok=True)
        content = {"task": task, "pooling": pooling, "seed": seed, "dev": score, "test": score / 2, "weights": weights}
        (folder / f"{task}-{pooling}-{seed}.json").write_text(json.dumps(content))

    return write


def arguments(tmp_path, checkpoint):
    given = [checkpoint("bert"), tmp_path / "runs", "--tasks", "ner", "--seeds", "101", "102"]
    return list(map(str, [*given, "--results", tmp_path / "results"]))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["ner", "pos", "snli", "sst"])
def test_pooling_and_seed_are_all_that_differs(script, checkpoint, environment, task):
    """Oracle: the config as it is."""
    environment.setenv("TASK", task)
    environment.setenv("MODEL", str(checkpoint("bert")))
    plain, other = (
        Params.from_file(str(script.CONFIG), json.dumps(changes)).as_dict(quiet=True)
        for changes in ({}, script.overrides(task, "first", 2))
    )
    found = differences(plain, other)
    assert {key.rpartition(".")[2] for key in found} == {"pooling", "random_seed", "numpy_seed", "pytorch_seed"}
    assert len(found) == 4


def test_finished_runs_are_not_trained_again(script, tmp_path, checkpoint, finished, monkeypatch, capsys):
    """Oracle: means and differences by hand; no process is started."""
    weights = script.sha256_of(checkpoint("bert") / "model.safetensors")[:16]
    for pooling, seed, score in (("first", 101, 40), ("first", 102, 42), ("mean", 101, 43), ("mean", 102, 44)):
        finished("ner", pooling, seed, score, weights)
    monkeypatch.setattr(script.subprocess, "run", None)
    monkeypatch.setattr("sys.argv", ["transformer_input.py", *arguments(tmp_path, checkpoint)])
    script.main()
    dev, test = capsys.readouterr().out.splitlines()
    assert (
        " ".join(dev.split()) == "ner dev first 41.00 ± 1.41 mean 43.50 ± 0.71 mean less first, by seed: +3.00, +2.00"
    )
    assert (
        " ".join(test.split()) == "ner test first 20.50 ± 0.71 mean 21.75 ± 0.35 mean less first, by seed: +1.50, +1.00"
    )


def test_results_of_other_weights_are_an_error(script, tmp_path, checkpoint, finished, monkeypatch):
    """Oracle: the line names the file and the remedy."""
    finished("ner", "first", 101, 40, "0" * 16)
    monkeypatch.setattr("sys.argv", ["transformer_input.py", *arguments(tmp_path, checkpoint)])
    with pytest.raises(SystemExit, match=r"ner-first-101.json is of other weights: give this checkpoint a --name"):
        script.main()
