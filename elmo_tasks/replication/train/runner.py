"""Several trainings, on this machine or on a cluster."""

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.train.outcome import Outcome
from elmo_tasks.replication.train.training import ALLENNLP, Training, begin, train

__all__ = ["run_here", "run_on_ray"]

_SECONDS_BETWEEN_LOOKS = 0.05


def run_here(runs: Iterable[Run], *, jobs: int = 1, command: Sequence[str] = ALLENNLP) -> Iterator[Outcome]:
    """
    Trains runs on this machine. When the caller stops asking, or is interrupted, what is being trained is ended.
    Several at once share the cores: threads that outnumber them wait for each other, and are many times as slow.

    # Parameters

    runs : `Iterable[Run]`
        What is not finished yet.
    jobs : `int`, optional (default = `1`)
        How many at once.
    command : `Sequence[str]`, optional (default = `ALLENNLP`)
        How `allennlp` is called.

    # Returns

    `Iterator[Outcome]`
        One for each run, as they end.

    # Raises

    `ValueError`
        If `jobs` is below 1.
    """
    if jobs < 1:
        raise ValueError(f"at least one run must be trained at once, but --jobs is {jobs}")
    return _run_here(deque(runs), jobs, command)


def _run_here(waiting: deque[Run], jobs: int, command: Sequence[str]) -> Iterator[Outcome]:
    active: list[Training] = []
    n_threads = None if jobs == 1 else max(1, len(os.sched_getaffinity(0)) // jobs)
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                run = waiting.popleft()
                begun = begin(run, command, n_threads)
                if isinstance(begun, Outcome):
                    yield begun
                else:
                    active.append(begun)
            over = [training for training in active if training.is_over()]
            active = [training for training in active if training not in over]
            yield from (training.outcome() for training in over)
            if active and not over:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
    finally:
        for training in active:
            training.stop()


def run_on_ray(
    runs: Iterable[Run], *, address: str, jobs: int | None = None, command: Sequence[str] = ALLENNLP
) -> Iterator[Outcome]:
    """
    Trains runs on a Ray cluster, one on a CPU, or on a GPU where the cluster has any. All its machines have to see the
    folders of data and results under the same names, and to have elmo_tasks installed.

    # Parameters

    runs : `Iterable[Run]`
        What is not finished yet.
    address : `str`
        As `ray.init` takes it: `"auto"`, `"host:port"`, or `"local"` for a cluster on this machine alone.
    jobs : `int`, optional (default = `None`)
        How many at once at most; `None` is as many as the cluster has room for.
    command : `Sequence[str]`, optional (default = `ALLENNLP`)
        How `allennlp` is called.

    # Returns

    `Iterator[Outcome]`
        One for each run, as they end; a run whose machine is lost has an outcome that says so.

    # Raises

    `ValueError`
        If Ray is not installed, or there is no cluster at the address, or `jobs` is below 1.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"at least one run must be trained at once, but --jobs is {jobs}")
    try:
        import ray
    except ImportError:
        raise ValueError("--ray needs Ray, which is not installed: pip install 'elmo_tasks[ray]'") from None
    # A cluster that we make needs no dashboard, and a core for each run that waits for one.
    made_here = {"include_dashboard": False, "num_cpus": jobs} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **made_here)
    except Exception as error:  # Ray raises plain ones too.
        raise ValueError(f"there must be a Ray cluster at {address!r}, but: {error}") from None
    try:
        yield from _run_on_ray(ray, deque(runs), jobs, command)
    finally:
        ray.shutdown()


def _run_on_ray(ray: Any, waiting: deque[Run], jobs: int | None, command: Sequence[str]) -> Iterator[Outcome]:
    has_gpus = ray.cluster_resources().get("GPU", 0) >= 1
    # A run that failed is not tried again here: it would begin anew what is to be gone on with.
    remote = ray.remote(num_cpus=1, num_gpus=int(has_gpus), max_retries=0)(train)
    active: dict[Any, Run] = {}
    while waiting or active:
        while waiting and (jobs is None or len(active) < jobs):
            run = waiting.popleft()
            active[remote.remote(run, tuple(command))] = run
        over, _ = ray.wait(list(active), num_returns=1)
        run = active.pop(over[0])
        try:
            yield ray.get(over[0])
        except ray.exceptions.RayError as error:
            yield Outcome(run, f"was lost by Ray: {error}")
