import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from itertools import count, islice

import pytest

from elmo_tasks.data.data_loaders.ordered_workers import interleaved


def numbers(n: int, worker: int, n_workers: int) -> Iterator[int]:
    return islice(range(n), worker, None, n_workers)


def broken_at(number: int, worker: int, n_workers: int) -> Iterator[int]:
    for item in islice(count(), worker, None, n_workers):
        if item == number:
            raise ValueError(f"item {number} is broken")
        yield item


def killed_at(number: int, worker: int, n_workers: int) -> Iterator[int]:
    for item in islice(count(), worker, None, n_workers):
        if item == number:
            # Only after the earlier items have been sent, or they would be lost too.
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGKILL)
        yield item


class TestInTurn:
    @pytest.mark.parametrize("n_workers", [0, 1, 2, 3])
    @pytest.mark.parametrize("n", [0, 1, 2, 100])
    def test_the_order_is_that_of_one_process(self, n, n_workers):
        """Oracle: `range`."""
        assert list(interleaved(partial(numbers, n), n_workers)) == list(range(n))
        assert not multiprocessing.active_children()

    @pytest.mark.parametrize("n_workers", [0, 1, 2])
    def test_an_error_comes_when_its_item_would(self, n_workers):
        """Oracle: the items before it, and its message; that of a worker has its traceback too."""
        items = []
        with pytest.raises(ValueError, match="item 5 is broken") as caught:
            items.extend(interleaved(partial(broken_at, 5), n_workers))
        assert ("in broken_at" in "".join(getattr(caught.value, "__notes__", []))) == (n_workers > 0)
        assert not multiprocessing.active_children()

    def test_a_worker_that_is_killed_is_noticed(self):
        """Oracle: the message, with the exit code of a killed process."""
        with pytest.raises(RuntimeError, match=r"exit code -9"):
            list(interleaved(partial(killed_at, 5), 2))
        assert not multiprocessing.active_children()

    def test_workers_end_when_no_more_items_are_taken(self):
        """Oracle: the list of processes."""
        items = interleaved(partial(broken_at, -1), 2)
        assert next(items) == 0
        assert len(multiprocessing.active_children()) == 2
        items.close()
        assert not multiprocessing.active_children()

    def test_workers_end_when_the_main_process_is_killed(self):
        """Oracle: the list of processes: a pipe that every worker holds is closed when the last one ends."""
        receiver, sender = multiprocessing.Pipe(duplex=False)

        def main() -> None:
            items = interleaved(partial(broken_at, -1), 2)
            next(items)
            sender.send([process.pid for process in multiprocessing.active_children()])
            os.kill(os.getpid(), signal.SIGKILL)

        process = multiprocessing.get_context("fork").Process(target=main)
        process.start()
        sender.close()
        assert len(receiver.recv()) == 2
        process.join()
        assert receiver.poll(120), "a worker is still there"
        with pytest.raises(EOFError):
            receiver.recv()
