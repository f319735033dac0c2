"""Tests of `tools/write_pages.py`, which publishes finished runs."""

import importlib.util
from types import ModuleType

import pytest

from elmo_tasks.files.json_files import write_json
from tests.paths import CHECKOUT


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    path = CHECKOUT / "tools" / "write_pages.py"
    spec = importlib.util.spec_from_file_location("write_pages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_finished_runs_are_copied_and_others_named(pages, make_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runs = [make_run(seed, patience=1) for seed in (1, 2, 3)]
    scores = {"settings": runs[0].settings, "inputs": {}}
    source = tmp_path / "output" / "open"
    (source / "snli" / "both" / "1").mkdir(parents=True)
    converged, cut = [40.0, 50.0, 49.0], [40.0, 50.0]
    write_json(source / "snli" / "both" / "1.json", {**scores, "epochs": converged})
    write_json(source / "snli" / "both" / "2.json", {**scores, "epochs": cut})
    write_json(source / "neighbors.json", {})
    # Its training is next to it, with the paths of a different checkout.
    write_json(source / "snli" / "both" / "1" / "config.json", {})

    pages.copy_finished(runs, source)

    assert [run.file.exists() for run in runs] == [True, False, False]
    assert (tmp_path / "results" / "open" / "neighbors.json").exists()
    assert "both/2.json: it was cut by the number of epochs" in capsys.readouterr().err
    assert not list((tmp_path / "results" / "open").rglob("config.json"))
