"""Tests of several trainings."""

import os
import signal
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from elmo_tasks.replication import Outcome, run_here, run_on_ray, status
from elmo_tasks.replication.train.runner import _run_on_ray
from elmo_tasks.replication.train.surroundings import n_cores
from elmo_tasks.replication.train.training import begin


class RayWithoutProcesses:
    """The part of Ray that we call; a task runs when it is waited for, and one of them is lost with its machine."""

    class RayError(Exception):
        pass

    def __init__(self, lost_seed: int, gpus: float = 0.0) -> None:
        self.exceptions = SimpleNamespace(RayError=self.RayError)
        self.lost_seed, self.gpus = lost_seed, gpus
        self.options: dict[str, Any] = {}
        self.most_active = self.active = 0

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "GPU": self.gpus} if self.gpus else {"CPU": 2.0}

    def remote(self, **options: Any) -> Any:
        self.options = options

        def task(function: Any) -> Any:
            def begin(run: Any, command: Any) -> Any:
                self.active += 1
                self.most_active = max(self.most_active, self.active)
                return lambda: self._result(function, run, command)

            return SimpleNamespace(remote=begin)

        return task

    def wait(self, tasks: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return tasks[:num_returns], tasks[num_returns:]

    def get(self, task: Any) -> Any:
        return task()

    def _result(self, function: Any, run: Any, command: Any) -> Any:
        self.active -= 1
        if run.seed == self.lost_seed:
            raise self.RayError("the node died")
        return function(run, command)


class TestRunHere:
    def test_one_after_another(self, make_run, allennlp):
        """Oracle: the order of the calls."""
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        outcomes = list(run_here(runs, command=allennlp.command))
        assert outcomes == [Outcome(run) for run in runs]
        assert [call[1] for call in allennlp.calls()] == [str(run.folder / "config.json") for run in runs]

    def test_after_a_failure_the_others_are_trained(self, make_run, allennlp):
        """Oracle: which of them are finished; the first fails by its process, the second by its folder."""
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        runs[1].serialization_dir.mkdir(parents=True)
        allennlp.behaves('case "$2" in *both/1/*) exit 1;; esac')
        errors = [outcome.error for outcome in run_here(runs, command=allennlp.command)]
        assert [error is None for error in errors] == [False, False, True]
        assert status(runs[2]) == "finished"

    @pytest.mark.parametrize(
        ("jobs", "cores", "given", "expected"),
        [(1, 8, None, ""), (2, 8, None, "4"), (3, 8, None, "2"), (4, 2, None, "1"), (2, 8, "3", "3")],
    )
    def test_several_at_once_share_the_cores(self, make_run, allennlp, monkeypatch, jobs, cores, given, expected):
        """Oracle: what the process finds in its environment; what the user has set takes precedence."""
        monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(cores)), raising=False)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if given is not None:
            monkeypatch.setenv("OMP_NUM_THREADS", given)
        allennlp.behaves('echo "$OMP_NUM_THREADS" > "$4/threads"')
        run = make_run()
        assert list(run_here([run], jobs=jobs, command=allennlp.command)) == [Outcome(run)]
        assert (run.serialization_dir / "threads").read_text().strip() == expected

    def test_without_an_affinity_all_cores_count(self, monkeypatch):
        """Oracle: the number that Python gives for the machine, as on macOS."""
        monkeypatch.delattr("os.sched_getaffinity", raising=False)
        monkeypatch.setattr("os.cpu_count", lambda: 6)
        assert n_cores() == 6

    def test_several_at_once(self, make_run, allennlp, tmp_path):
        """Oracle: each of two waits until the other has begun, so that one alone would never end."""
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        meet = 'touch "{0}/$(basename $(dirname "$2"))"; while test $(ls "{0}" | wc -l) -lt 2; do sleep 0.01; done'
        (tmp_path / "met").mkdir()
        allennlp.behaves(meet.format(tmp_path / "met"))
        outcomes = list(run_here(runs, jobs=2, command=allennlp.command))
        assert {outcome.run.name for outcome in outcomes} == {run.name for run in runs}
        assert all(outcome.error is None for outcome in outcomes)

    def test_a_caller_that_stops_asking_ends_the_trainings(self, make_run, allennlp):
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

    def test_ctrl_c_while_a_training_starts_ends_it(self, make_run, allennlp, monkeypatch):
        """
        Oracle: the lock is free, though the interrupt comes before the caller knows of the training. Another thread
        may get the signal, as one of a numerical library.
        """
        allennlp.behaves("exec sleep 60")

        def interrupted(*args: Any) -> Any:
            begun = begin(*args)
            os.kill(os.getpid(), signal.SIGINT)
            # Time for the other thread to get it.
            time.sleep(0.1)
            return begun

        monkeypatch.setattr("elmo_tasks.replication.train.runner.begin", interrupted)
        # A shell makes what it starts in the background ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        done = threading.Event()
        other = threading.Thread(target=done.wait)
        other.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                next(run_here([make_run()], command=allennlp.command))
        finally:
            done.set()
            other.join()
            after = signal.signal(signal.SIGINT, before)
        assert status(make_run()) == "to run"
        assert after is signal.default_int_handler

    def test_runs_may_be_trained_by_another_thread(self, make_run, allennlp):
        """Oracle: the outcome; only the main thread may set handlers of signals."""
        with ThreadPoolExecutor(1) as threads:
            (outcome,) = threads.submit(lambda: list(run_here([make_run()], command=allennlp.command))).result()
        assert outcome.error is None


class TestRunOnRay:
    def test_runs_are_begun_where_there_is_room_and_a_lost_one_is_reported(self, make_run, allennlp):
        """Oracle: what was asked of a Ray without processes: two at once, and the outcome of the lost one."""
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        ray = RayWithoutProcesses(lost_seed=2)
        outcomes = list(_run_on_ray(ray, deque(runs), 2, allennlp.command))
        assert [outcome.error for outcome in outcomes] == [None, "was lost by Ray: the node died", None]
        assert ray.most_active == 2
        assert ray.options == {"num_cpus": 1, "num_gpus": 0, "max_retries": 0}

    def test_a_run_has_a_gpu_where_there_are_any(self, make_run, allennlp):
        """Oracle: what was asked of Ray; without a limit, it gets all runs at once."""
        ray = RayWithoutProcesses(lost_seed=0, gpus=4.0)
        runs = [make_run(seed=seed) for seed in (1, 2, 3)]
        assert len(list(_run_on_ray(ray, deque(runs), None, allennlp.command))) == ray.most_active == 3
        assert ray.options["num_gpus"] == 1

    def test_no_jobs_are_refused(self, make_run):
        """Oracle: the message, before Ray is started."""
        with pytest.raises(ValueError, match="--jobs is 0"):
            next(run_on_ray([make_run()], address="local", jobs=0))

    @pytest.mark.slow
    def test_on_a_cluster_of_this_machine(self, make_run, allennlp, slow_ray):
        """Oracle: the outcomes, in any order; one run fails. Ray is real, has the cores of the jobs, and ends."""
        ray = pytest.importorskip("ray")
        runs = [make_run(seed=seed) for seed in (1, 2)]
        allennlp.behaves('case "$2" in *both/1/*) exit 1;; esac')
        trainings = run_on_ray(runs, address="local", jobs=2, command=allennlp.command)
        outcomes = [next(trainings)]
        assert ray.cluster_resources()["CPU"] == 2
        outcomes += trainings
        assert not ray.is_initialized()
        assert {outcome.run.seed: outcome.error is None for outcome in outcomes} == {1: False, 2: True}
        assert [status(run) for run in runs] == ["to run", "finished"]
