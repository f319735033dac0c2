"""The folder of an unfinished job: its parts and its fingerprint."""

import errno
import fcntl
import json
import logging
import os
from pathlib import Path
from typing import Any

from elmo_tasks.embed_job.formats.output_format import Format
from elmo_tasks.embed_job.formats.part_file import end_of_part, is_part, numbers_of_parts, part_path
from elmo_tasks.embed_job.options import LINES, differences
from elmo_tasks.files.atomic_files import TEMPORARY, atomic_file, sync
from elmo_tasks.files.checksums import check_file, checksum_path, write_checksum

__all__ = ["JobFolder", "missing_parts"]

logger = logging.getLogger(__name__)

# Readers of Parquet folders skip names that begin with an underscore.
_JOB, _LOCK, _REPLACES = "_job.json", "_lock", "_replaces"
# File systems of clusters that have no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def missing_parts(job: Path) -> list[Path]:
    """
    The parts that a finished folder of Parquet files must have and has not; none for a file of another program.

    # Parameters

    job
        Its file `_job.json`.

    # Raises

    `ValueError`
        If that is damaged.
    """
    facts = _read_job(job)
    if not {LINES, "part_lines"} & facts.keys():
        return []
    n_lines, part_lines = facts.get(LINES), facts.get("part_lines")
    if type(n_lines) is not int or type(part_lines) is not int or part_lines < 1:
        raise ValueError(f"{job} must say how many lines the text and each part have, but does not")
    numbers = numbers_of_parts(job.parent, "parquet")
    # There are more where lines are long: the last part that is there says whether lines come after it.
    n_parts = -(-n_lines // part_lines)
    if numbers:
        last = max(numbers)
        end = end_of_part(part_path(job.parent, last, "parquet"))
        n_parts = max(n_parts, last + 1 + (end is not None and end < n_lines))
    return [part_path(job.parent, number, "parquet") for number in range(n_parts) if number not in numbers]


class JobFolder:
    """
    The folder `OUTPUT.parts`, in which a job keeps what it has done until its output is there.

    # Parameters

    output
        The file or folder that the job makes.
    format
        Of the output.
    force
        Whether to start again, and to replace an output that is there.
    resume
        Whether to resume an earlier run, if there was one.

    # Raises

    `FileExistsError`
        If the output or the folder is there without `force` or `resume`; or if something is there that this program did
        not make.
    `FileNotFoundError`
        If the folder of the output is not there.
    """

    def __init__(self, output: Path, format: Format, *, force: bool, resume: bool) -> None:
        if force and resume:
            raise ValueError("a job must either start again (force) or resume (resume), but both are given: choose one")
        self.output = output
        self.path = output.with_name(f"{output.name}.parts")
        self._replaced = output.with_name(f"{output.name}.parts-replaced")
        self.format = format
        self._force, self._resume = force, resume
        self._lock: int | None = None
        self._check_paths()

    def _check_paths(self) -> None:
        if not self.output.parent.is_dir():
            raise FileNotFoundError(f"{self.output.parent} must be a folder, but is not: make it first")
        is_folder = self.format.write is None
        # What a link leads to was not made by this program, and is neither removed nor replaced.
        for path in [self.path, *([self.output, self._replaced] if is_folder else [])]:
            if path.is_symlink():
                raise FileExistsError(
                    f"{path} must not be a link, but is one to {os.readlink(path)}: remove it, or choose another name "
                    "for the output"
                )
        if self.output.exists() and (self.output.is_dir() != is_folder or (is_folder and not _has_job(self.output))):
            what = "a folder of Parquet files that this program made" if is_folder else "a file"
            raise FileExistsError(f"{self.output} must not be there, or be {what}, but is not: choose another name")
        for folder in [self.path, *([self._replaced] if is_folder else [])]:
            if folder.exists() and not _is_ours(folder):
                raise FileExistsError(
                    f"{folder} must not be there, or be a folder that this program made, but it has no {_JOB}: move it "
                    "to another place, or choose another name for the output"
                )
        if self._force or self._resume:
            return
        for path, what in ((self.output, "is there"), (self.path, "has the parts of an earlier run")):
            if os.path.lexists(path):
                raise FileExistsError(
                    f"{path} must not be there yet, but {what}: give --resume to resume, --force to start again, or "
                    "choose another name"
                )

    def open(self, job: dict[str, Any]) -> bool:
        """
        Makes or takes over the folder; no other process can until `close`, or the end of this process, however it ends.

        # Parameters

        job
            The fingerprint.

        # Returns

        `bool`
            Whether the output is finished already, so that there is nothing to do. If it is a file, it is what was
            written: its checksum agrees.

        # Raises

        `ValueError`
            If the earlier run was another job, with the differences; or a file is damaged.
        `BlockingIOError`
            If another process has the folder.
        """
        if self.output.exists() and not self.path.exists() and not self._force:
            self._check_output(job)
            self._remove_replaced()
            return True
        self.path.mkdir(exist_ok=True)
        self._take_lock()
        for left in self.path.glob(f"{TEMPORARY}*"):
            left.unlink()
        if self._force:
            self._begin(job)
            return False
        if (self.path / _JOB).exists():
            self._check_same(_read_job(self.path / _JOB), job, self.path)
            # An older output of this job, which may be the reason for --force, is not the one that is being made.
            is_finished = self.output.exists() and not (self.path / _REPLACES).exists()
            if is_finished and self.format.write is not None and not checksum_path(self.output).exists():
                self.write_checksum()
        else:
            # A kill left the folder half removed, or half made.
            is_finished = self.output.exists()
        if is_finished:
            self._check_output(job)
            self.remove()
        elif not (self.path / _JOB).exists():
            self._begin(job)
        return is_finished

    def _begin(self, job: dict[str, Any]) -> None:
        _remove_made(self.path)
        if self.output.exists():
            (self.path / _REPLACES).touch()
        with atomic_file(self.path / _JOB) as temporary:
            temporary.write_text(json.dumps(job, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        sync(self.path.parent)

    def _check_output(self, job: dict[str, Any]) -> None:
        has_checksum = False
        if self.format.write is not None:
            try:
                has_checksum = check_file(self.output)
            except ValueError as error:
                raise ValueError(f"{error}; --force computes it again") from error
        self._check_same(self._job_of_output(), job, self.output)
        if self.format.write is not None and not has_checksum:
            raise ValueError(
                f"{self.output} must have its checksum next to it, but {checksum_path(self.output).name} is not there: "
                "supply it, or give --force to start again"
            )

    def _check_same(self, before: dict[str, Any] | None, job: dict[str, Any], path: Path) -> None:
        if before == job:
            return
        what = "it was not made by this program" if before is None else differences(before, job)
        raise ValueError(
            f"--resume must be given the same job, but {path} is of another one: {what}. Give the same options "
            "as then, or --force to start again, or choose another name"
        )

    def _job_of_output(self) -> dict[str, Any] | None:
        if self.format.job_of is None:
            return _read_job(self.output / _JOB)
        try:
            return self.format.job_of(self.output)
        except Exception as error:
            # Not of this format, or damaged: h5py, zipfile and pyarrow have errors of many kinds for that.
            if isinstance(error, PermissionError):
                raise
            return None

    def _take_lock(self) -> None:
        # Not with the library filelock: where a file system has no locks, its substitute would outlive a killed job.
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise BlockingIOError(
                f"only one process may work on {self.path}, but another one does: wait for it, or stop it"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            logger.warning(
                "%s is on a file system without locks: do not run this job twice at the same time", self.path
            )

    def done(self) -> set[int]:
        """The numbers of the parts that are done."""
        return numbers_of_parts(self.path, self.format.kind)

    def publish(self) -> None:
        """Renames the folder to the output."""
        if self.output.exists():
            # A folder cannot replace another one atomically. A job that is killed here resumes with --resume.
            self._remove_replaced()
            self.output.rename(self._replaced)
        # An actor that was killed while it wrote a part has left half a file; another has written the part since.
        for pattern in (_REPLACES, _LOCK, f"{TEMPORARY}*"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        # Not before: a job that was resumed in this format by mistake has lost nothing.
        own = {part_path(self.path, number, self.format.kind) for number in self.done()}
        for path in filter(is_part, set(self.path.iterdir()) - own):
            path.unlink()
        self.path.rename(self.output)
        sync(self.output.parent)
        self._remove_replaced()
        self.close()

    def write_checksum(self) -> None:
        """Writes the checksum of the output next to it, which `--resume` and `verify` compare."""
        write_checksum(self.output)

    def _remove_replaced(self) -> None:
        if self.format.write is None and self._replaced.exists():
            _remove(self._replaced)

    def remove(self) -> None:
        """Removes the folder, once the output is there."""
        _remove(self.path)
        self.close()

    def close(self) -> None:
        """Releases the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _read_job(path: Path) -> dict[str, Any]:
    try:
        job = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} must hold the options of a job as JSON, but is damaged ({error}): start again with --force"
        ) from error
    if not isinstance(job, dict):
        raise ValueError(
            f"{path} must hold the options of a job as a JSON object, but holds a {type(job).__name__}: start again "
            "with --force"
        )
    return job


def _has_job(folder: Path) -> bool:
    return (folder / _JOB).is_file()


def _is_ours(folder: Path) -> bool:
    """Whether a folder has the file of a job, or nothing yet but the lock of one."""
    return folder.is_dir() and (
        _has_job(folder) or all(path.name == _LOCK or path.name.startswith(TEMPORARY) for path in folder.iterdir())
    )


def _remove_made(folder: Path) -> None:
    """
    Removes the files of this program and no others. Those after which the folder would no longer be known as one of
    this program come last.
    """
    made = [path for path in folder.iterdir() if path.name.startswith(TEMPORARY) or is_part(path)]
    for path in (folder / _REPLACES, *made, folder / _JOB):
        path.unlink(missing_ok=True)


def _remove(folder: Path) -> None:
    _remove_made(folder)
    (folder / _LOCK).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        logger.warning("%s stays, since it has files of another program", folder)
