"""Parts that this process embeds, each of which is written while the next is computed."""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.embed_job.part_worker import PartDone, PartWorker
from elmo_tasks.embed_job.text_parts import LinePart

__all__ = ["embed_in_this_process"]


def embed_in_this_process(worker: PartWorker, parts: Iterable[LinePart]) -> Iterator[PartDone]:
    """
    Embeds parts in their order. A thread writes one part at a time, so that two are in memory at most, and the wait
    for the disk costs no time.

    # Parameters

    worker
        It computes in the thread of the caller.
    parts
        Read as they are needed.

    # Returns

    `Iterator[PartDone]`
        In the order of the parts, each once its file is on the disk.

    # Raises

    `ValueError`, `OSError`
        See `PartWorker`. After an error, the part before it is written to its end.
    """
    written: Future[PartDone] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="part-writer") as writer:
        for part in parts:
            embedded, done = worker.embed(part)
            if written is not None:
                yield written.result()
            written = writer.submit(_write, worker, part, embedded, done)
            # Two parts in memory, and not three while the next one is computed.
            del embedded
        if written is not None:
            yield written.result()


def _write(worker: PartWorker, part: LinePart, embedded: EmbeddedPart, done: PartDone) -> PartDone:
    worker.write(part, embedded)
    return done
