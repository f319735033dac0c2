"""
Long jobs in parts. Each part is a file in a folder, so it is complete or missing. A job computes
the missing parts, with any number of processes, on one machine or on a Ray cluster, and joins them.

While `out.parquet` is written, its parts and the settings of the job are in the folder
`out.parquet.parts`. When the parts are joined, the settings move to `_job-out.parquet.json`, which
is removed last: until then, the same job only tidies.
"""

import argparse
import logging
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from tqdm import tqdm

from elmo_tasks.files.atomic_files import (
    atomic_file,
    atomic_folder,
    check_not_input,
    check_replaceable,
    locked,
    remove_leftovers,
    replace_folder,
    restore_folder,
)
from elmo_tasks.files.extras import needs
from elmo_tasks.files.json_files import read_json, write_json

__all__ = [
    "FileOutput",
    "FolderOutput",
    "Job",
    "Part",
    "PartsOutput",
    "at_least_one",
    "ending_of",
    "is_joined",
]

logger = logging.getLogger(__name__)

_JOB = "_job.json"
_FILES = ("part-*", "*whole*", "_tmp-*", _JOB)
# Between two lines of a log, which replace the bar where there is no terminal.
_LOG_SECONDS = 60.0

Item = TypeVar("Item")


class _TooFew(argparse.ArgumentTypeError, ValueError):
    """Printed by argparse as it is, and an error in Python."""


def at_least_one(count: str | int) -> int:
    """A count from Python or from a command line."""
    if int(count) < 1:
        raise _TooFew(f"expected at least 1, got {count}")
    return int(count)


class Part(NamedTuple, Generic[Item]):
    """The file of a part, the number of its first item, and its items."""

    file: Path
    first: int
    items: list[Item]


def ending_of(
    output: str | os.PathLike[str], source: Path, endings: Sequence[str], *, force: bool
) -> str:
    """The ending of an output that may be written. `/` is the ending of a folder."""
    matching = [ending for ending in endings if os.fspath(output).endswith(ending)]
    if not matching:
        raise ValueError(f"expected an output that ends with {', '.join(endings)}, got {output}")
    path = Path(output)
    check_not_input(path, source)
    if path.exists() and not force and not is_joined(path):
        raise _exists(path)
    return matching[0]


def _exists(output: Path) -> FileExistsError:
    return FileExistsError(f"{output} exists: use --force (force=True) to replace it")


def is_joined(output: Path) -> bool:
    """Whether a job was killed after it had joined its parts, so the same job has only to tidy."""
    return _record(output.resolve()).exists()


def _record(output: Path) -> Path:
    """The file with the settings of a job while it puts its output in place."""
    return output.with_name(f"_job-{output.name}.json")


@dataclass(frozen=True)
class FileOutput:
    """The output is a file, which `join` writes from the files of the parts."""

    join: Callable[[list[Path], Path], None]

    def check(self, output: Path) -> None:
        """Does nothing: a file may be replaced."""

    def whole(self, folder: Path, output: Path) -> Path:
        return folder / f"whole{output.suffix}"

    def write(self, parts: list[Path], whole: Path) -> None:
        with atomic_file(whole) as temporary:
            self.join(parts, temporary)

    def place(self, whole: Path, output: Path) -> None:
        os.replace(whole, output)


@dataclass(frozen=True)
class FolderOutput:
    """
    The output is a folder, which `join` fills. An existing folder is replaced only if it has the
    file `mark`.
    """

    join: Callable[[list[Path], Path], None]
    mark: str

    def check(self, output: Path) -> None:
        if not (output / self.mark).exists():
            check_replaceable(output, [])

    def whole(self, folder: Path, output: Path) -> Path:
        return folder / "whole"

    def write(self, parts: list[Path], whole: Path) -> None:
        with atomic_folder(whole, ["*"]) as temporary:
            self.join(parts, temporary)

    def place(self, whole: Path, output: Path) -> None:
        replace_folder(whole, output, ["*"])


class PartsOutput:
    """The output is the folder with the parts."""

    def check(self, output: Path) -> None:
        check_replaceable(output, ["part-*"])

    def whole(self, folder: Path, output: Path) -> Path:
        return folder

    def write(self, parts: list[Path], whole: Path) -> None:
        """Does nothing: the folder is whole with its last part."""

    def place(self, whole: Path, output: Path) -> None:
        replace_folder(whole, output, ["part-*"])


OutputKind = FileOutput | FolderOutput | PartsOutput
"""
How an output is made of the parts. `check` raises an error if it may not replace what exists.
`whole` is a path in the folder of the parts, where `write` joins them, so `place` only has to move
the whole output to its own path.
"""


@dataclass(frozen=True)
class Job:
    """
    A job, by its `output`; its `settings`, which are everything that the parts depend on, as JSON;
    and the number of items, in all (`n_items`) and in each part (`part_items`).
    """

    output: Path
    settings: dict[str, Any]
    n_items: int
    part_items: int
    suffix: str
    """The suffix of a part's file."""
    force: bool
    unit: str = "lines"

    def run(
        self,
        items: Iterable[Item],
        write: Callable[[Part[Item]], int],
        kind: OutputKind,
        *,
        workers: int | None,
        ray: str | None,
        device: str | None = None,
    ) -> None:
        """
        Writes the parts by `write`, which returns their number of items and is pickled if there are
        other processes, and then the output. A second job with the same output is an error, and so
        are existing parts of a different one, unless `force` removes them.
        """
        at_least_one(self.part_items)
        if workers is not None:
            at_least_one(workers)
        # The target of a link may be on a different disk.
        output = self.output.resolve()
        folder = output.with_name(f"{output.name}.parts")
        record = _record(output)
        whole = kind.whole(folder, output)
        with locked(output) as is_locked:
            if is_locked:
                restore_folder(output)
            if self.force:
                record.unlink(missing_ok=True)
            if record.exists():
                self._check_same(record, output)
            else:
                # A different job may have written it since `ending_of`.
                if not self.force and _has_content(output):
                    raise _exists(output)
                kind.check(output)
                self._resume(folder)
                with _interruption_explained():
                    missing = _missing_parts(items, folder, self.suffix, self.part_items)
                    written = _written(missing, write, workers=workers, ray=ray, device=device)
                    self._report(written, n_parts_before=len(self._parts_in(folder)))
                    kind.write(self._parts_in(folder), whole)
                os.replace(folder / _JOB, record)
            if whole.exists():
                kind.place(whole, output)
            if folder.exists():
                shutil.rmtree(folder)
        record.unlink(missing_ok=True)

    def _resume(self, folder: Path) -> None:
        """Creates the folder of the parts, or resumes in it."""
        folder.mkdir(exist_ok=True)
        file = folder / _JOB
        # Without a part, nothing is lost: the folder is new, or a job has ended before its first
        # part.
        if self.force or not file.exists() or not any(folder.glob("part-*")):
            check_replaceable(folder, _FILES)
            for child in folder.iterdir():
                if child.is_dir():
                    shutil.rmtree(child)
                else:
                    child.unlink()
            write_json(file, self.settings)
        remove_leftovers(folder)
        self._check_same(file, folder)

    @property
    def _n_parts(self) -> int:
        return -(-self.n_items // self.part_items)

    def _parts_in(self, folder: Path) -> list[Path]:
        """The parts of this job that exist. Any others are an error."""
        expected = {_part_file(folder, number, self.suffix) for number in range(self._n_parts)}
        files = sorted(folder.glob("part-*"))
        for file in files:
            if file not in expected:
                raise ValueError(f"expected {self._n_parts} parts: remove {file}")
        return files

    def _check_same(self, file: Path, path: Path) -> None:
        """
        Raises an error if a different job has left what is at `path`. `file` has the settings of
        that job.
        """
        old_settings = read_json(file)
        changes = []
        for key, value in self.settings.items():
            old_value = old_settings.get(key)
            if old_value != value:
                changes.append(f"{key} was {old_value!r}, now {value!r}")
        if changes:
            problem = f"{path} belongs to a different job ({', '.join(changes)})"
            raise ValueError(f"{problem}: use --force (force=True) to start again")

    def _report(self, written: Iterator[int], n_parts_before: int) -> None:
        """
        Shows the progress: a bar on a terminal; elsewhere lines in a log, at the start and every
        minute.
        """
        name = self.output
        total = self.n_items
        unit = self.unit
        message = "%s: %d %s; %d of %d parts exist"
        logger.info(message, name, total, unit, n_parts_before, self._n_parts)
        n_before = min(total, self.part_items * n_parts_before)
        n_computed = 0
        start = time.monotonic()
        last_logged = start
        with tqdm(total=total, initial=n_before, disable=None, unit=unit) as bar:
            for n_written in written:
                bar.update(n_written)
                n_computed += n_written
                now = time.monotonic()
                if bar.disable and now - last_logged >= _LOG_SECONDS:
                    last_logged = now
                    n_done = n_before + n_computed
                    seconds_left = (now - start) * (total - n_done) / n_computed
                    logger.info(
                        "%s: %d of %d %s, %d s left", name, n_done, total, unit, seconds_left
                    )
        seconds = time.monotonic() - start
        logger.info("%s: computed %d %s in %d s", name, n_computed, unit, seconds)


def _has_content(output: Path) -> bool:
    if output.is_dir():
        return any(output.iterdir())
    return output.exists()


def _part_file(folder: Path, number: int, suffix: str) -> Path:
    return folder / f"part-{number:08}{suffix}"


@contextmanager
def _interruption_explained() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted: the same command continues") from None


def _missing_parts(
    items: Iterable[Item], folder: Path, suffix: str, n_items: int
) -> Iterator[Part[Item]]:
    """The parts of `n_items` items that are not in the folder."""
    remaining = iter(items)
    for number in count():
        items_of_part = list(islice(remaining, n_items))
        if not items_of_part:
            return
        file = _part_file(folder, number, suffix)
        if not file.exists():
            yield Part(file, number * n_items, items_of_part)


def _written(
    parts: Iterator[Part[Item]],
    write: Callable[[Part[Item]], int],
    *,
    workers: int | None,
    ray: str | None,
    device: str | None,
) -> Iterator[int]:
    """The numbers of items of the parts that `write` writes, by this process or others."""
    if ray is not None:
        uses_gpu = device is not None and device.startswith("cuda")
        return _written_on_ray(parts, write, workers, ray, "GPU" if uses_gpu else "CPU")
    if workers is not None:
        return _written_by_processes(parts, write, workers)
    return map(write, parts)


def _written_by_processes(
    parts: Iterator[Part[Item]], write: Callable[[Part[Item]], int], workers: int
) -> Iterator[int]:
    # It counts the cores that this process may use.
    from torch import get_num_threads

    n_threads = None
    if "OMP_NUM_THREADS" not in os.environ:
        n_threads = max(1, get_num_threads() // workers)
    # Spawned, because a process forked from one with torch threads can hang.
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, initializer=_start_worker, initargs=(n_threads,)) as pool:
        processes = multiprocessing.active_children()
        written = pool.imap(write, parts)
        while True:
            try:
                yield written.next(timeout=5)
            except StopIteration:
                return
            except multiprocessing.TimeoutError:
                # The pool replaces a process that was killed, but never computes its part.
                if any(process.exitcode is not None for process in processes):
                    cause = "a worker was killed, possibly for its memory"
                    raise RuntimeError(f"{cause}: the same command continues") from None


def _start_worker(n_threads: int | None) -> None:
    from torch import set_num_threads

    # Only the process that has started this one handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if n_threads is not None:
        set_num_threads(n_threads)


def _written_on_ray(
    parts: Iterator[Part[Item]],
    write: Callable[[Part[Item]], int],
    workers: int | None,
    address: str,
    resource: str,
) -> Iterator[int]:
    with needs("ray"):
        import ray

    if not ray.is_initialized():
        ray.init(address)
    settings = {}
    for name, value in os.environ.items():
        if name.startswith("ELMO_TASKS_"):
            settings[name] = value

    def compute(part: Part[Item]) -> int:
        os.environ.update(settings)
        return write(part)

    # Ray repeats the task of a machine that is lost. Its own pool of processes would return the
    # error as a result.
    task = ray.remote(num_cpus=1, num_gpus=int(resource == "GPU"))(compute)
    n_workers = workers or int(ray.cluster_resources().get(resource, 1))
    running: list[Any] = []
    for part in parts:
        running.append(task.remote(part))
        if len(running) >= n_workers:
            done, running = ray.wait(running)
            yield from ray.get(done)
    yield from ray.get(running)
