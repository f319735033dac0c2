"""Tests of the files of finished runs."""

import json

import pytest

from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication.evidence.run_file import (
    RunFile,
    failed_file,
    finished_file,
    place_of,
    with_sentences,
)


@pytest.fixture
def planned(make_run, finish):
    """Makes a finished run of a plan: `planned(dev=0.5, epochs=(...), **run)`."""

    def make(dev=0.5, epochs=(0.25, 0.5), **arguments):
        run = make_run(variant="baseline", **arguments)
        run.about["bilm"] = None
        run.identity.update(computation="c0", inputs={"data/snli/train.jsonl": "d0"})
        finish(run, dev)
        for epoch, score in enumerate(epochs):
            file = run.serialization_dir / f"metrics_epoch_{epoch}.json"
            file.write_text(json.dumps({"validation_accuracy": score}))
        return run

    return make


class TestRunFile:
    def test_it_has_what_tables_and_figures_need(self, planned, tmp_path):
        """Oracle: by hand."""
        path = place_of(tmp_path, "snli", "baseline", 3, None)
        finished_file(planned(seed=3), path, lambda: 100)
        assert path == tmp_path / "snli" / "baseline" / "3.json"
        file = RunFile.read(path)
        run = file.run
        assert (file.key, file.status, file.reason) == (("snli", "baseline", 3, None), "finished", None)
        assert (run.dev, run.test, run.epochs, run.layer_weights) == (50.0, 25.0, (25.0, 50.0), ())
        assert (file.content["training_size"], file.content["metric"]) == (100, "accuracy")
        assert file.digests["computation"] == "c0" and file.digests["inputs"] == {"data/snli/train.jsonl": "d0"}
        assert {"elmo_tasks", "torch"} <= set(run.versions) and "core" in file.content["machines"][0]
        assert str(tmp_path) not in path.read_text(), "a folder of this machine"

    def test_the_size_of_a_part_is_in_the_name(self, tmp_path):
        """Oracle: by hand."""
        assert place_of(tmp_path, "srl", "input", 1, 105) == tmp_path / "srl" / "input" / "1-105.json"

    def test_a_failure_has_its_reason(self, make_run, tmp_path):
        """Oracle: what was written, for a run that has no folder."""
        run = make_run()
        run.identity.update(computation="c0", inputs={})
        failed_file(run, tmp_path / "a" / "1.json", "nan loss")
        file = RunFile.read(tmp_path / "a" / "1.json")
        assert (file.status, file.reason, file.run) == ("failed", "nan loss", None)

    @pytest.mark.parametrize("score", [float("nan"), 1.5])
    def test_a_score_that_is_none_is_not_written(self, planned, tmp_path, score):
        """Oracle: the message, and no file."""
        run = planned(epochs=(score,))
        with pytest.raises(ValueError, match="'epochs' must be numbers from 0 to 100"):
            finished_file(run, tmp_path / "1.json", None)
        assert not (tmp_path / "1.json").exists()

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": 2}, "must have a format up to 1, but has 2.*a newer version"),
            ({"format": "1"}, '"format": 1, but has'),
            ({"status": "done"}, "'status' must be"),
            ({"task": "nre"}, "'task' must be one of"),
            ({"dev": 6900}, "'dev' must be numbers from 0 to 100, but has 6900"),
            ({"dev": None}, "'dev' must be there"),
            ({"seed": True}, "'seed' must be there"),
            ({"epochs": [None]}, "'epochs' must be numbers"),
            ({"layer_weights": [{"place": "input"}]}, "'layer' must be there"),
            ({"layer_weights": [[0.5]]}, "'layer_weights' must be objects"),
            ({"about": [1]}, "'about' must be there"),
            ({"digests": {"config": "a", "computation": "b", "inputs": None}}, "'inputs' must be there"),
        ],
    )
    def test_a_file_of_another_form_is_refused(self, planned, tmp_path, change, message):
        """Oracle: the messages, which name the file."""
        path = tmp_path / "1.json"
        finished_file(planned(), path, None)
        write_sealed(path, {**read_sealed(path), **change})
        with pytest.raises(ValueError, match=rf"1\.json.*{message}"):
            RunFile.read(path)

    def test_a_damaged_file_is_refused(self, planned, tmp_path):
        """Oracle: the messages for a score that was changed, and for half of the file."""
        path = tmp_path / "1.json"
        finished_file(planned(), path, None)
        whole = path.read_text()
        path.write_text(whole.replace('"dev": 50.0', '"dev": 60.0'))
        with pytest.raises(ValueError, match=r"1\.json is damaged or was changed"):
            RunFile.read(path)
        path.write_text(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=r"1\.json must be JSON"):
            RunFile.read(path)

    def test_it_may_have_the_scores_of_sentences_if_they_are_those_of_the_run(self, planned, tmp_path):
        """Oracle: the numbers; a file without them, and after others were refused, is as it was."""
        path = tmp_path / "1.json"
        finished_file(planned(), path, None)
        before = path.read_bytes()
        assert RunFile.read(path).run.sentences is None
        with pytest.raises(ValueError, match=r"give the score of the run, 25\.00, but give 50\.00"):
            with_sentences(path, "1;0")
        assert path.read_bytes() == before
        with_sentences(path, "1;0;0;0")
        assert RunFile.read(path).run.sentences.tolist() == [[1], [0], [0], [0]]
        assert RunFile.read(path).run.test == 25.0
