"""Several trainings, on this machine or on a cluster."""

import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from elmo_tasks.ray_session import ray_session
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.train.outcome import Outcome
from elmo_tasks.replication.train.surroundings import n_cores
from elmo_tasks.replication.train.training import ALLENNLP, Training, begin, train

__all__ = ["run_here", "run_on_ray"]

_SECONDS_BETWEEN_LOOKS = 0.05


def run_here(
    runs: Iterable[Run], *, jobs: int = 1, command: Sequence[str] = ALLENNLP
) -> Generator[Outcome, None, None]:
    """
    Trains runs on this machine. When the caller stops asking, or is interrupted, the trainings are ended. Several at
    once share the cores: threads that outnumber them wait for each other, and are many times as slow.

    # Parameters

    runs
        Those that are not finished yet.
    jobs
        How many at once.
    command
        How `allennlp` is called.

    # Returns

    `Generator[Outcome]`
        One for each run, as they end.

    # Raises

    `ValueError`
        If `jobs` is below 1.
    """
    if jobs < 1:
        raise ValueError(f"at least one run must be trained at once, but --jobs is {jobs}")
    return _run_here(deque(runs), jobs, command)


def _run_here(waiting: deque[Run], jobs: int, command: Sequence[str]) -> Generator[Outcome, None, None]:
    active: list[Training] = []
    n_threads = None if jobs == 1 else max(1, n_cores() // jobs)
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                run = waiting.popleft()
                # Ctrl-C between the start of a training and its entry in the list would leave it running.
                with _interrupts_held():
                    begun = begin(run, command, n_threads)
                    if isinstance(begun, Training):
                        active.append(begun)
                if isinstance(begun, Outcome):
                    yield begun
            over = [training for training in active if training.is_over()]
            active = [training for training in active if training not in over]
            yield from (training.outcome() for training in over)
            if active and not over:
                time.sleep(_SECONDS_BETWEEN_LOOKS)
    finally:
        for training in active:
            training.stop()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """
    Ctrl-C takes effect at the end of the block. To block the signal in this thread would not do: a thread of a
    numerical library would get it, and Python would raise here all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        # Python raises in the main thread only.
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            signal.raise_signal(signal.SIGINT)


def run_on_ray(
    runs: Iterable[Run], *, address: str, jobs: int | None = None, command: Sequence[str] = ALLENNLP
) -> Generator[Outcome, None, None]:
    """
    Trains runs on a Ray cluster, one on a CPU, or on a GPU where the cluster has any. All its machines have to see the
    folders of data and results under the same names, and to have elmo_tasks installed.

    # Parameters

    runs
        Those that are not finished yet.
    address
        See `ray_session`; a cluster that is made here has a core for each job.
    jobs
        How many at once at most; `None` is as many as the cluster has room for.
    command
        How `allennlp` is called.

    # Returns

    `Generator[Outcome]`
        One for each run, as they end; a run whose machine is lost has an outcome that says so.

    # Raises

    `ValueError`
        If `jobs` is below 1.
    `ModuleNotFoundError`, `ConnectionError`
        See `ray_session`.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"at least one run must be trained at once, but --jobs is {jobs}")
    with ray_session(address, n_cpus=jobs) as ray:
        yield from _run_on_ray(ray, deque(runs), jobs, command)


def _run_on_ray(
    ray: Any, waiting: deque[Run], jobs: int | None, command: Sequence[str]
) -> Generator[Outcome, None, None]:
    has_gpus = ray.cluster_resources().get("GPU", 0) >= 1
    # Ray must not retry a run that failed: the reason is to be read first.
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
