"""Processes of one machine that embed parts."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import c_bool

from elmo_tasks.embed_job.part_worker import PartDone, PartWork, PartWorker
from elmo_tasks.embed_job.text_parts import LinePart

__all__ = ["embed_in_processes"]

# Of each process: the worker, and whether the job has ended before its parts.
_worker: PartWorker | None = None
_is_over: c_bool | None = None


def embed_in_processes(n_processes: int, work: PartWork, parts: Iterable[LinePart]) -> Iterator[PartDone]:
    """
    Embeds parts in processes, each with its biLM and its share of the cores.

    # Parameters

    n_processes
        How many.
    work
        Options, folder and digests.
    parts
        Read no further ahead than the processes need.

    # Returns

    `Iterator[PartDone]`
        As they are done, in any order.

    # Raises

    `RuntimeError`
        If a process ends before its part is done.
    """
    n_threads = max(1, len(os.sched_getaffinity(0)) // n_processes)
    # A process that is forked from one in which torch has started its threads can hang.
    context = multiprocessing.get_context("spawn")
    is_over = context.RawValue(c_bool, False)
    pool = ProcessPoolExecutor(n_processes, mp_context=context, initializer=_start, initargs=(work, n_threads, is_over))
    running: set[Future[PartDone]] = set()
    try:
        for part in parts:
            # It starts processes as they are needed. Ctrl-C goes to all processes of a terminal: these never get it,
            # and end with the job.
            with _without(signal.SIGINT):
                running.add(pool.submit(_run, part))
            if len(running) >= 2 * n_processes:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a process of the job ended before its part was done: if it has printed no error of its own, the memory "
            "may have been full: try fewer --workers or --batch-tokens"
        ) from error
    finally:
        # A second signal in the midst of it would leave processes that nobody ends, and a job that waits for them. The
        # parts that they have begun are done first, and no others.
        with _without(signal.SIGINT, signal.SIGTERM):
            is_over.value = True
            pool.shutdown(cancel_futures=True)


@contextmanager
def _without(*signals: signal.Signals) -> Iterator[None]:
    """Signals wait until the block has ended, and processes that are started in it never get them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(work: PartWork, n_threads: int, is_over: c_bool) -> None:
    global _worker, _is_over
    _is_over = is_over
    _worker = PartWorker(work, max_threads=n_threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A job that is killed cannot end its processes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(part: LinePart) -> PartDone:
    if _worker is None or _is_over is None:
        raise RuntimeError("a process of the pool must be started with its worker, but was not")
    if _is_over.value:
        # Nobody takes it any more.
        raise CancelledError
    return _worker.run(part)
