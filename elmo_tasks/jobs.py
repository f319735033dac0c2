"""
Long jobs in parts. Each part is a file in a folder, written under a temporary name and renamed, so it is complete or
missing. A job computes the missing parts, with any number of processes, on one machine or on a Ray cluster.
"""

import fcntl
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from elmo_tasks.files.json_files import read_json, write_json

__all__ = ["JOB", "Part", "job_folder", "missing_parts", "written"]

JOB = "job.json"
"""The file with everything that the parts depend on."""

Item = TypeVar("Item")


class Part(NamedTuple, Generic[Item]):
    """The file of a part, the number of its first item, and its items."""

    file: Path
    first: int
    items: list[Item]


@contextmanager
def job_folder(folder: Path, job: dict[str, Any], *, force: bool = False) -> Iterator[None]:
    """
    Creates the folder of the parts, or resumes in it, and locks it: a second job with the same output is an error, and
    so is a different job, unless `force` empties the folder.
    """
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file = folder / JOB
        # A folder without the file is what is left of a job that was killed while it removed its parts.
        if force or not file.exists():
            for child in folder.iterdir():
                child.unlink()
            write_json(file, job)
        before = read_json(file)
        changed = [f"{key} was {before.get(key)!r}, now {job[key]!r}" for key in job if before.get(key) != job[key]]
        if changed:
            found = f"{folder} belongs to a different job ({', '.join(changed)})"
            raise ValueError(f"{found}: use --force (force=True) to start again")
        yield
    except BlockingIOError:
        raise BlockingIOError(f"another job is writing {folder}: wait for it, or choose another output") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted: the same command continues") from None
    finally:
        os.close(descriptor)


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
