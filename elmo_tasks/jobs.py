"""
Long jobs in parts. Each part is a file in a folder, written under a temporary name and renamed, so it is complete or
missing. A job computes the missing parts, with any number of processes, on one machine or on a Ray cluster.
"""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from elmo_tasks.files.json_files import read_json, write_json

__all__ = ["JOB", "Part", "missing_parts", "open_job", "written"]

JOB = "job.json"
"""The file with everything that the parts depend on."""

Item = TypeVar("Item")


class Part(NamedTuple, Generic[Item]):
    """The file of a part, the number of its first item, and its items."""

    file: Path
    first: int
    items: list[Item]


def open_job(folder: Path, job: dict[str, Any]) -> None:
    """Creates the folder, or resumes in it. A different job in it is an error."""
    file = folder / JOB
    if not file.exists():
        # Also removes the remains of a job that was killed while it removed its parts.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_json(file, job)
    before = read_json(file)
    if changed := [f"{key} was {before.get(key)!r}, now {job[key]!r}" for key in job if before.get(key) != job[key]]:
        raise ValueError(
            f"{folder} belongs to a different job ({', '.join(changed)}): use --force (force=True) to start again"
        )


def missing_parts(items: Iterable[Item], folder: Path, suffix: str, n_items: int) -> Iterator[Part[Item]]:
    """The parts of `n_items` items that are not in the folder."""
    items = iter(items)
    for number in count():
        if not (some := list(islice(items, n_items))):
            return
        if not (file := folder / f"part-{number:08}{suffix}").exists():
            yield Part(file, number * n_items, some)


def written(
    parts: Iterator[Part[Item]],
    write: Callable[[Part[Item]], int],
    *,
    workers: int | None = None,
    ray: str | None = None,
    on_gpu: bool = False,
) -> Iterator[int]:
    """
    Writes the parts, in this process or in others, and yields what `write` returns for each.

    # Parameters

    write
        Writes one part. It is pickled if there are other processes.
    workers, ray
        The number of processes, and the address of a Ray cluster that runs them. `None`: only this process, or all
        cores of the cluster. All machines need the same folders.
    """
    if workers is None and ray is None:
        yield from map(write, parts)
        return
    if ray is not None:
        from ray.util.multiprocessing import Pool

        with Pool(workers, ray_address=ray, ray_remote_args={"num_gpus": 1} if on_gpu else None) as pool:
            yield from pool.imap(write, parts)
        return
    from torch import get_num_threads  # It counts the cores that this process may use.

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, get_num_threads() // (workers or 1))))
    # Spawned, because a process forked from one with torch threads can hang. Only this process handles Ctrl-C.
    ignore_interrupts = signal.signal, (signal.SIGINT, signal.SIG_IGN)
    with multiprocessing.get_context("spawn").Pool(workers, *ignore_interrupts) as pool:
        processes = multiprocessing.active_children()
        done = pool.imap(write, parts)
        while True:
            try:
                yield done.next(timeout=5)
            except StopIteration:
                return
            except multiprocessing.TimeoutError:
                # The pool replaces a process that was killed, but never computes its part.
                if any(process.exitcode is not None for process in processes):
                    raise RuntimeError(
                        "a worker was killed, possibly for its memory: the same command continues"
                    ) from None
