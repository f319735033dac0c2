"""Tests of the tables of a plan that are of the biLM alone."""

import json
import shutil
from types import SimpleNamespace

import pytest

from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication import Exhibit, Measurement, Outcome, make
from elmo_tasks.replication.evidence import measurement as module
from elmo_tasks.replication.evidence.measurement import measurement_files, place_of_measurement
from tests.paths import BILM_RESULTS, EARLIER_RESULTS, FIXTURES, TINY_BILM

NOTHING = {"overrides": {}, "arguments": {}, "names": {}}


@pytest.fixture
def experiment(environment, tmp_path):
    """Data and biLM of the fixtures, of which the texts of word senses are a copy."""
    data = tmp_path / "data"
    data.mkdir()
    for path in FIXTURES.iterdir():
        if path.name != "wsd":
            (data / path.name).symlink_to(path)
    shutil.copytree(FIXTURES / "wsd", data / "wsd")
    return make.experiment_of(data=str(data), bilm="small-open", results=tmp_path / "results", **NOTHING)


@pytest.fixture
def of_table(experiment, tmp_path):
    """A measurement: `of_table(Exhibit.TABLE_5, missing=None)`."""

    def made(exhibit: Exhibit, missing: str | None = None) -> Measurement:
        return Measurement(exhibit, place_of_measurement(tmp_path / "runs", exhibit), experiment, missing)

    return made


@pytest.fixture
def senses(monkeypatch):
    """In place of `elmo-wsd`: writes the scores that ship; the folders that it was called for."""
    called = []

    def measure(run) -> None:
        called.append(run.results)
        numbers = {key: value for key, value in read_sealed(BILM_RESULTS / "table5.json").items() if key != "digests"}
        run.scores.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(run.scores, {**numbers, "identity": run.identity()})

    monkeypatch.setattr("elmo_tasks.replication.train.wsd_run.WordSenseRun.measure", measure)
    return called


class TestMeasurement:
    def test_word_senses_are_measured_once_for_the_same_data(self, of_table, senses, experiment, tmp_path):
        """Oracle: the states, and the table that ships; other data is named, and without data it is not compared."""
        measurement = of_table(Exhibit.TABLE_5)
        assert (measurement.name, measurement.state()) == ("bilm/table5", "to run")
        measurement.measure()
        of_table(Exhibit.TABLE_5).measure()
        assert senses == [experiment.results]
        assert measurement.state() == "finished" and measurement_files(tmp_path / "runs") == [measurement.path]
        shipped = Measurement(Exhibit.TABLE_5, BILM_RESULTS / "table5.json", experiment, "no data")
        assert measurement.table().rows == shipped.table().rows and shipped.state() == "finished"
        next((tmp_path / "data" / "wsd" / "test").glob("*.key.txt")).write_text("another")
        again = of_table(Exhibit.TABLE_5)
        assert again.state() == "refused" and "but is another: digests.data is" in again.problem()
        assert of_table(Exhibit.TABLE_5, "no data").state() == "finished"

    def test_a_bilm_may_be_linked(self, of_table, senses, experiment, tmp_path):
        """Oracle: the state. The file has the name of the folder that is linked."""
        link = tmp_path / "latest"
        link.symlink_to(experiment.variables["ELMO_TASKS_BILM"])
        linked = make.experiment_of(data=str(tmp_path / "data"), bilm=str(link), results=tmp_path / "2", **NOTHING)
        measurement = Measurement(Exhibit.TABLE_5, of_table(Exhibit.TABLE_5).path, linked)
        measurement.measure()
        assert read_sealed(measurement.path)["bilm"] == "small-open" and measurement.state() == "finished"

    def test_perplexities_need_a_softmax(self, experiment, tmp_path):
        """Oracle: the message."""
        tiny = make.experiment_of(data=str(tmp_path / "data"), bilm=str(TINY_BILM), results=tmp_path / "2", **NOTHING)
        with pytest.raises(ValueError, match=r"Table 7 needs a biLM with a softmax .*'bilm' of a plan"):
            Measurement(Exhibit.TABLE_7, tmp_path / "table7.json", tiny).measure()

    def test_data_that_is_replaced_meanwhile_is_not_what_was_measured(self, of_table, monkeypatch, tmp_path):
        """Oracle: the state afterwards; the training itself replaces the data."""
        rows = json.loads((EARLIER_RESULTS / "table7.json").read_text())
        data = tmp_path / "data" / "ner"

        def replace_data(experiment, runs, **options):
            data.unlink()
            shutil.copytree(FIXTURES / "ner", data)
            (data / "train.txt").write_text((data / "dev.txt").read_text())
            return []

        monkeypatch.setattr(module, "fine_tunings", lambda experiment, texts: [])
        monkeypatch.setattr(module, "train_runs", replace_data)
        monkeypatch.setattr(module, "fine_tuning_results", lambda runs: rows)
        of_table(Exhibit.TABLE_7).measure()
        other = make.experiment_of(data=str(tmp_path / "data"), bilm="small-open", results=tmp_path / "2", **NOTHING)
        again = Measurement(Exhibit.TABLE_7, of_table(Exhibit.TABLE_7).path, other)
        assert "but is another: digests.data/ner/train.txt is" in again.problem()

    def test_a_file_that_is_damaged_or_of_another_bilm_is_refused(self, of_table, senses):
        """Oracle: the messages."""
        measurement = of_table(Exhibit.TABLE_5, "no data")
        measurement.measure()
        content = read_sealed(measurement.path)
        measurement.path.write_text(measurement.path.read_text().replace('"small-open"', '"original"'))
        assert "is damaged or was changed" in measurement.problem()
        write_sealed(measurement.path, {**content, "bilm": "original"})
        assert 'bilm is "original", not "small-open"' in measurement.problem()
        write_sealed(measurement.path, {"table": "table 7"})
        assert "must be a file of `allennlp elmo-wsd --output-file`" in measurement.problem()

    def test_perplexities_are_of_the_text_of_the_tasks(self, of_table, monkeypatch):
        """Oracle: the table that ships, for runs that are finished; which digests the file has."""
        rows = json.loads((EARLIER_RESULTS / "table7.json").read_text())
        monkeypatch.setattr(module, "fine_tunings", lambda experiment, texts: [SimpleNamespace(name="bilm/ner/1")])
        monkeypatch.setattr(module, "status", lambda run: "to run")
        monkeypatch.setattr(module, "train_runs", lambda experiment, runs, **options: map(Outcome, runs))
        monkeypatch.setattr(module, "fine_tuning_results", lambda runs: rows)
        measurement = of_table(Exhibit.TABLE_7)
        measurement.measure()
        assert measurement.state() == "finished" and len(measurement.table().rows) == 5
        digests = read_sealed(measurement.path)["digests"]
        assert {"biLM/vocab.txt", "data/ner/train.txt", "data/squad/dev.json"} <= digests.keys()
        assert not any("glove" in name for name in digests)

    def test_a_training_that_fails_leaves_no_file(self, of_table, monkeypatch):
        """Oracle: the message."""
        monkeypatch.setattr(module, "fine_tunings", lambda experiment, texts: [SimpleNamespace(name="bilm/ner/1")])
        monkeypatch.setattr(module, "status", lambda run: "to run")
        monkeypatch.setattr(module, "train_runs", lambda experiment, runs, **options: [Outcome(runs[0], "nan loss")])
        measurement = of_table(Exhibit.TABLE_7)
        with pytest.raises(ChildProcessError, match="bilm/ner/1: nan loss"):
            measurement.measure()
        assert measurement.state() == "to run"
