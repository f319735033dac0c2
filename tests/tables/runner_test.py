"""Tests of several trainings."""

import pytest

from elmo_tasks.tables import Outcome, run_here, run_on_ray, status


class TestRunHere:
    def test_one_after_another(self, make_run, allennlp):
        """Oracle: the order of the calls."""
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        outcomes = list(run_here(runs, command=allennlp.command))
        assert outcomes == [Outcome(run) for run in runs]
        assert [call[1] for call in allennlp.calls()] == [str(run.folder / "config.json") for run in runs]

    def test_after_a_failure_the_others_go_on(self, make_run, allennlp):
        """Oracle: which of them are finished; the first fails by its process, the second by its folder."""
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        runs[1].serialization_dir.mkdir(parents=True)
        allennlp.behaves('case "$2" in *both/1/*) exit 1;; esac')
        errors = [outcome.error for outcome in run_here(runs, command=allennlp.command)]
        assert [error is None for error in errors] == [False, False, True]
        assert status(runs[2]) == "finished"

    def test_several_at_once(self, make_run, allennlp, tmp_path):
        """Oracle: each of two waits until the other has begun, so that one alone would never end."""
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        meet = 'touch "{0}/$(basename $(dirname "$2"))"; while test $(ls "{0}" | wc -l) -lt 2; do sleep 0.01; done'
        (tmp_path / "met").mkdir()
        allennlp.behaves(meet.format(tmp_path / "met"))
        outcomes = list(run_here(runs, jobs=2, command=allennlp.command))
        assert {outcome.run.name for outcome in outcomes} == {run.name for run in runs}
        assert all(outcome.error is None for outcome in outcomes)

    def test_who_stops_asking_ends_what_is_trained(self, make_run, allennlp):
        """Oracle: the second run, which would last a minute, is not in progress afterwards; the third was not begun."""
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        allennlp.behaves('case "$2" in *both/1/*) ;; *) exec sleep 60;; esac')
        outcomes = run_here(runs, jobs=2, command=allennlp.command)
        assert next(outcomes).run == runs[0]
        outcomes.close()
        assert [status(run) for run in runs] == ["finished", "to run", "to run"]
        assert len(allennlp.calls()) <= 2

    def test_no_jobs_are_refused(self, make_run):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="--jobs is 0"):
            run_here([make_run()], jobs=0)


class TestRunOnRay:
    def test_without_ray_it_says_what_to_install(self, make_run, monkeypatch):
        """Oracle: the message; a module that is `None` cannot be imported."""
        monkeypatch.setitem(__import__("sys").modules, "ray", None)
        with pytest.raises(ValueError, match=r"pip install 'elmo_tasks\[ray\]'"):
            list(run_on_ray([make_run()], address="local"))

    @pytest.mark.slow
    def test_on_a_cluster_of_this_machine(self, make_run, allennlp):
        """Oracle: the outcomes, in any order; one run fails. Ray is real."""
        pytest.importorskip("ray")
        runs = [make_run(seed=seed) for seed in (1, 2)]
        allennlp.behaves('case "$2" in *both/1/*) exit 1;; esac')
        outcomes = list(run_on_ray(runs, address="local", jobs=2, command=allennlp.command))
        assert {outcome.run.seed: outcome.error is None for outcome in outcomes} == {1: False, 2: True}
        assert [status(run) for run in runs] == ["to run", "finished"]
