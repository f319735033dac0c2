"""Tests of parts that are written while the next is computed."""

import threading

import pytest

from elmo_tasks.embed_job.part_worker import PartDone
from elmo_tasks.embed_job.text_parts import LinePart
from elmo_tasks.embed_job.this_process import embed_in_this_process

PARTS = [LinePart(number, number, ["a b"]) for number in range(4)]


class Worker:
    """A worker that notes what it does, and writes a part only once the next is computed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[tuple[str, int]] = []
        self.started = [threading.Event() for _ in PARTS]
        self._error = error

    def embed(self, part: LinePart) -> tuple[int, PartDone]:
        self.calls.append(("embed", part.number))
        self.started[part.number].set()
        return part.number, PartDone(part.number, 2)

    def write(self, part: LinePart, embedded: int) -> None:
        assert part.number == embedded
        if part.number < 3:
            assert self.started[part.number + 1].wait(60), "the next part is not computed until this one is written"
        if self._error is not None and part.number == 1:
            raise self._error
        self.calls.append(("write", part.number))


class TestEmbedInThisProcess:
    def test_a_part_is_written_while_the_next_is_computed(self):
        """Oracle: by hand: each write but the last waits until the next part is computed."""
        worker = Worker()
        assert list(embed_in_this_process(worker, PARTS)) == [PartDone(number, 2) for number in range(4)]
        assert [number for what, number in worker.calls if what == "write"] == [0, 1, 2, 3]

    def test_a_part_is_done_once_it_is_written(self):
        """Oracle: the calls when each is given out."""
        worker = Worker()
        for done in embed_in_this_process(worker, PARTS):
            assert ("write", done.number) in worker.calls

    def test_an_error_of_the_disk_ends_the_job(self):
        """Oracle: the error itself; the parts that were given out before it; no thread is left."""
        error, found = OSError(28, "No space left on device", "part-00000001.npz"), []
        with pytest.raises(OSError) as raised:
            for done in embed_in_this_process(Worker(error), PARTS):
                found.append(done.number)
        assert raised.value is error and found == [0]
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("part-writer")]

    def test_an_error_of_a_part_leaves_the_one_before_it_whole(self):
        """Oracle: the calls."""
        worker = Worker()

        def parts():
            yield from PARTS[:2]
            worker.started[2].set()
            raise ValueError("line 3")

        with pytest.raises(ValueError, match="line 3"):
            list(embed_in_this_process(worker, parts()))
        assert worker.calls[-1] == ("write", 1)
