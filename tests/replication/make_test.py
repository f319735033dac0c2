"""Tests of the way from a request to a table."""

import shutil
from pathlib import Path

import pytest

from elmo_tasks.replication import TASK_TEXTS, TASKS, Variant, fine_tunings, make
from elmo_tasks.replication.train.outcome import Outcome
from tests.paths import FIXTURES, TINY_BILM

NOTHING = {"overrides": {}, "arguments": {}, "names": {}}


def lines_of(run):
    return len(Path(run.config["train_data_path"]).read_text().splitlines())


class TestExperimentOf:
    def test_no_file_depends_on_the_working_folder(self, environment, tmp_path):
        """Oracle: absolute paths of relative ones; arguments take precedence over the environment."""
        environment.setenv("ELMO_TASKS_DATA", "/nowhere")
        environment.chdir(FIXTURES)
        found = make.experiment_of(data=".", bilm="bilm_tiny", results=tmp_path / "results", **NOTHING)
        assert (found.variables["ELMO_TASKS_DATA"], found.variables["ELMO_TASKS_BILM"]) == (
            str(FIXTURES),
            str(TINY_BILM),
        )
        assert found.results == tmp_path / "results"

    def test_data_that_is_not_there_is_an_error(self, environment, tmp_path):
        """Oracle: the message names the variable, the option and the value."""
        with pytest.raises(FileNotFoundError, match=r"ELMO_TASKS_DATA \(--data\) must be a folder, but '.*no' is not"):
            make.experiment_of(data=str(tmp_path / "no"), bilm=None, results=tmp_path, **NOTHING)


class TestTrainRuns:
    def test_parts_of_the_training_set_are_written_before_the_trainings(self, environment, tmp_path, monkeypatch):
        """Oracle: the number of lines; functions in place of the trainings, with their options."""
        experiment = make.experiment_of(data=None, bilm=None, results=tmp_path, **NOTHING)
        run = experiment.run("snli", Variant.elmo(TASKS["snli"]), 1, size=10)
        trained = []

        def train(where):
            def function(runs, **options):
                trained.append((where, lines_of(runs[0]), options))
                yield from map(Outcome, runs)

            return function

        monkeypatch.setattr(make, "run_here", train("here"))
        monkeypatch.setattr(make, "run_on_ray", train("ray"))
        assert list(make.train_runs(experiment, [run])) == [Outcome(run)]
        assert list(make.train_runs(experiment, [run], ray="auto")) == [Outcome(run)]
        assert trained == [("here", 10, {"jobs": 1}), ("ray", 10, {"address": "auto", "jobs": None})]

    def test_a_part_that_cannot_be_taken_is_an_error_of_its_runs(self, environment, tmp_path, monkeypatch):
        """Oracle: the message; the other run is trained."""
        experiment = make.experiment_of(data=None, bilm=None, results=tmp_path, **NOTHING)
        too_large, other = (experiment.run("snli", Variant.baseline(), 1, size=size) for size in (10**6, 10))
        monkeypatch.setattr(make, "run_here", lambda runs, jobs: (Outcome(run) for run in runs))
        failed, trained = make.train_runs(experiment, [too_large, other])
        assert "a size must be from 1 to" in failed.error and "but one is 1000000" in failed.error
        assert trained.run is other

    @pytest.mark.parametrize("is_restored", [True, False])
    def test_a_run_whose_data_was_changed_meanwhile_does_not_count(self, tmp_path, monkeypatch, is_restored):
        """Oracle: the message, and what is left of its folder; a run of other data, or of data that is back, counts."""
        data = shutil.copytree(FIXTURES, tmp_path / "data")
        experiment = make.experiment_of(data=str(data), bilm=None, results=tmp_path / "runs", **NOTHING)
        runs = [experiment.run(task, Variant.baseline(), 1) for task in ("ner", "snli")]
        file = data / "ner" / "train.txt"
        content = file.read_text()

        def train(runs, jobs):
            for run in runs:
                run.serialization_dir.mkdir(parents=True)
                file.write_text(content if is_restored else f"{content}\n")
                yield Outcome(run)

        monkeypatch.setattr(make, "run_here", train)
        ner, snli = make.train_runs(experiment, runs)
        assert snli.error is None and runs[1].serialization_dir.is_dir()
        assert runs[0].serialization_dir.is_dir() == is_restored
        if is_restored:
            assert ner.error is None
        else:
            assert (
                ner.error == "was trained while data/ner/train.txt was changed, and is removed: run the command again"
            )

    def test_the_bilms_of_table_7_are_trained(self, tmp_path, monkeypatch):
        """Oracle: an outcome for each; a function in place of the trainings."""
        experiment = make.experiment_of(data=str(FIXTURES), bilm="small-open", results=tmp_path, **NOTHING)
        runs = fine_tunings(experiment, [TASK_TEXTS[name] for name in ("ner", "sst")])
        monkeypatch.setattr(make, "run_here", lambda runs, jobs: (Outcome(run) for run in runs))
        assert list(make.train_runs(experiment, runs)) == [Outcome(run) for run in runs]


class TestWordSenses:
    def test_its_data_is_below_that_of_the_experiment(self, environment, tmp_path):
        """Oracle: by hand."""
        experiment = make.experiment_of(data=None, bilm=None, results=tmp_path, **NOTHING)
        run = make.word_senses(experiment, None)
        assert (run.data, run.bilm, run.wordnet) == (FIXTURES / "wsd", str(TINY_BILM), None)
        assert run.scores == tmp_path / "wsd" / "scores.json"
