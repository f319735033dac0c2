"""Items made by several processes, in an order that does not depend on their number."""

import multiprocessing
import queue
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TypeVar

__all__ = ["interleaved"]

T = TypeVar("T")

_ITEMS_AHEAD = 32
"""How many items a worker makes ahead: enough to keep the trainer busy while it fills its buffer of sentences."""


def interleaved(make: Callable[[int, int], Iterator[T]], n_workers: int) -> Iterator[T]:
    """
    The items of `make(0, 1)`, made by several processes.

    # Parameters

    make : `Callable[[int, int], Iterator[T]]`
        `make(worker, n_workers)` makes the items `worker`, `worker + n_workers`, `worker + 2 * n_workers`, ... of
        `make(0, 1)`.
    n_workers : `int`
        The number of processes. 0: this process makes the items.

    # Raises

    `Exception`
        Any error of `make`, with the worker's traceback as a note.
    `RuntimeError`
        If a worker ends too early, killed for example.
    """
    if n_workers == 0:
        yield from make(0, 1)
        return
    workers: list[tuple[multiprocessing.Process, Connection]] = []
    try:
        workers.extend(_started(make, worker, n_workers) for worker in range(n_workers))
        while True:
            for process, connection in workers:
                try:
                    item, error = connection.recv()
                except (EOFError, ConnectionResetError):
                    process.join()
                    raise RuntimeError(
                        f"a worker of the data loader must live until its work is done, but {process.name} ended with "
                        f"exit code {process.exitcode} (-9: killed, perhaps because memory ran out): try fewer workers "
                        "or a smaller buffer"
                    ) from None
                if error is not None:
                    raise error
                if item is None:
                    # This worker has no more items, so the later ones have none either.
                    return
                yield item
    finally:
        for process, connection in workers:
            # Not `terminate`: a worker has inherited the signal handler of AllenNLP.
            process.kill()
            process.join()
            connection.close()


def _started(
    make: Callable[[int, int], Iterator[T]], worker: int, n_workers: int
) -> tuple[multiprocessing.Process, Connection]:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_work, args=(make, worker, n_workers, receiver, sender), daemon=True)
    process.start()
    # Only the worker has the sending end, and only we have the receiving end: each notices when the other is killed.
    sender.close()
    return process, receiver


def _work(
    make: Callable[[int, int], Iterator[T]], worker: int, n_workers: int, receiver: Connection, sender: Connection
) -> None:
    receiver.close()
    ready: queue.Queue[tuple[T | None, Exception | None]] = queue.Queue(_ITEMS_AHEAD)

    def fill() -> None:
        try:
            for item in make(worker, n_workers):
                ready.put((item, None))
            ready.put((None, None))
        except Exception as error:
            error.add_note(f"in worker {worker} of {n_workers}:\n{traceback.format_exc()}")
            ready.put((None, error))

    threading.Thread(target=fill, daemon=True).start()
    # A broken pipe: the main process ended.
    with suppress(BrokenPipeError, KeyboardInterrupt):
        while True:
            answer = ready.get()
            sender.send(answer)
            if answer[0] is None:
                return
