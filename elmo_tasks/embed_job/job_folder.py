"""The folder of an unfinished job: its parts and its fingerprint."""

import errno
import fcntl
import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any, get_args

from elmo_tasks.atomic_files import TEMPORARY, atomic_file, sync
from elmo_tasks.embed_job.formats.output_format import Format
from elmo_tasks.embed_job.formats.part_file import PartKind, numbers_of_parts
from elmo_tasks.embed_job.options import differences

__all__ = ["JobFolder"]

logger = logging.getLogger(__name__)

# Readers of Parquet folders skip names that begin with an underscore.
_JOB, _LOCK, _REPLACES = "_job.json", "_lock", "_replaces"
# File systems of clusters that have no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


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
        if self.output.exists() and (
            self.output.is_dir() != is_folder or (is_folder and self._job_of_output() is None)
        ):
            what = "a folder of Parquet files that this program made" if is_folder else "a file"
            raise FileExistsError(f"{self.output} must not be there, or be {what}, but is not: choose another name")
        if self._force or self._resume:
            return
        for path, what in ((self.output, "is there"), (self.path, "has the parts of an earlier run")):
            if path.exists():
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
            Whether the output is finished already, so that there is nothing to do.

        # Raises

        `ValueError`
            If the earlier run was another job, with the differences.
        `BlockingIOError`
            If another process has the folder.
        """
        before = self._job_of_output() if self.output.exists() else None
        if self.output.exists() and not self.path.exists() and not self._force:
            self._check_same(before, job, self.output)
            self._remove_replaced()
            return True
        self.path.mkdir(exist_ok=True)
        self._take_lock()
        for left in self.path.glob(f"{TEMPORARY}*"):
            left.unlink()
        manifest = self.path / _JOB
        if manifest.exists() and not self._force:
            self._check_same(json.loads(manifest.read_text(encoding="utf-8")), job, self.path)
            if self.output.exists() and not (self.path / _REPLACES).exists():
                self._check_same(before, job, self.output)
            is_finished = before == job
        else:
            # Without --force, an output is there only if a kill left the folder half removed.
            is_finished = self.output.exists() and not self._force
            if is_finished:
                self._check_same(before, job, self.output)
            self._begin(job)
        if is_finished:
            self.remove()
        return is_finished

    def _begin(self, job: dict[str, Any]) -> None:
        self._empty()
        if self.output.exists():
            (self.path / _REPLACES).touch()
        with atomic_file(self.path / _JOB) as temporary:
            temporary.write_text(json.dumps(job, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        sync(self.path.parent)

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
            manifest = self.output / _JOB
            return json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else None
        try:
            return self.format.job_of(self.output)
        except (OSError, ValueError):
            # Not of this format.
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

    def _empty(self) -> None:
        """Removes the files of this program and no others."""
        # Parts of every kind: the earlier run may have been one for another format.
        parts = [f"part-*.{kind}" for kind in get_args(PartKind)]
        for pattern in (_JOB, _REPLACES, f"{TEMPORARY}*", *parts):
            for path in self.path.glob(pattern):
                path.unlink()

    def done(self) -> set[int]:
        """The numbers of the parts that are done."""
        return numbers_of_parts(self.path, self.format.kind)

    def publish(self) -> None:
        """Renames the folder to the output."""
        # An actor that was killed while it wrote a part has left half a file; another has written the part since.
        for pattern in (_REPLACES, _LOCK, f"{TEMPORARY}*"):
            for path in self.path.glob(pattern):
                path.unlink(missing_ok=True)
        if self.output.exists():
            # A folder cannot replace another one atomically. A job that is killed here resumes with --resume.
            self._remove_replaced()
            self.output.rename(self._replaced)
        self.path.rename(self.output)
        sync(self.output.parent)
        self._remove_replaced()
        self.close()

    def _remove_replaced(self) -> None:
        if self._replaced.exists():
            shutil.rmtree(self._replaced)

    def remove(self) -> None:
        """Removes the folder, once the output is there."""
        self._empty()
        (self.path / _LOCK).unlink()
        try:
            self.path.rmdir()
        except OSError:
            logger.warning("%s stays, since it has files of another program", self.path)
        self.close()

    def close(self) -> None:
        """Releases the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
