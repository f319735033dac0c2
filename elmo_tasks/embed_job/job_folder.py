"""The folder of a job that is not finished: its parts, and what tells the job from others."""

import errno
import fcntl
import json
import logging
import os
import shutil
from pathlib import Path
from typing import Any

from elmo_tasks.atomic_files import TEMPORARY, atomic_file, sync
from elmo_tasks.embed_job.formats.output_format import Format
from elmo_tasks.embed_job.formats.part_file import numbers_of_parts
from elmo_tasks.embed_job.options import differences

__all__ = ["JobFolder"]

logger = logging.getLogger(__name__)

# Underscores, so that readers of Parquet folders leave them out.
_JOB, _LOCK, _REPLACES = "_job.json", "_lock", "_replaces"
# File systems of clusters that have no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class JobFolder:
    """
    The folder `OUTPUT.parts`, in which a job keeps what it has done until its output is there.

    # Parameters

    output : `Path`
        What the job shall make.
    format : `Format`
        Of the output.
    force : `bool`
        Whether to begin anew, and to replace an output that is there.
    resume : `bool`
        Whether to go on with what an earlier run has done, if there was one.

    # Raises

    `FileExistsError`
        If the output or the folder is there, and neither is said; or if another kind of thing is there.
    `FileNotFoundError`
        If the folder above is not there.
    """

    def __init__(self, output: Path, format: Format, *, force: bool, resume: bool) -> None:
        if force and resume:
            raise ValueError("a job must either begin anew (force) or go on (resume), but both are said: choose one")
        self.output = output
        self.path = output.with_name(f"{output.name}.parts")
        self._replaced = output.with_name(f"{output.name}.parts-replaced")
        self.format = format
        self._force, self._resume = force, resume
        self._lock: int | None = None
        self._check_paths()

    def _check_paths(self) -> None:
        if not self.output.parent.is_dir():
            raise FileNotFoundError(f"{self.output.parent} must be a folder, but is none: make it first")
        is_folder = self.format.write is None
        if self.output.exists() and (
            self.output.is_dir() != is_folder or (is_folder and self._job_of_output() is None)
        ):
            what = "a folder of Parquet files that this program made" if is_folder else "a file"
            raise FileExistsError(f"{self.output} must not be there, or be {what}, but is not: choose another name")
        if self._force or self._resume:
            return
        for path, what in ((self.output, "is there"), (self.path, "has what an earlier run has done")):
            if path.exists():
                raise FileExistsError(
                    f"{path} must not be there yet, but {what}: say --resume to go on, --force to begin anew, or "
                    "choose another name"
                )

    def open(self, job: dict[str, Any]) -> bool:
        """
        Makes or takes over the folder; nobody else can until `close`, or the end of the process, however it ends.

        # Parameters

        job : `Dict[str, Any]`
            The fingerprint.

        # Returns

        `bool`
            Whether the output is finished already, so that there is nothing to do.

        # Raises

        `ValueError`
            If the earlier run was another job; the message says what differs.
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
            f"--resume goes on with the same job, but {path} is of another one: {what}. Say the same as then, --force "
            "to begin anew, or choose another name"
        )

    def _job_of_output(self) -> dict[str, Any] | None:
        if self.format.job_of is None:
            manifest = self.output / _JOB
            return json.loads(manifest.read_text(encoding="utf-8")) if manifest.exists() else None
        try:
            return self.format.job_of(self.output)
        except (OSError, ValueError):
            # Not of this format at all.
            return None

    def _take_lock(self) -> None:
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
            logger.warning("%s is on a file system without locks: do not start this job twice at once", self.path)

    def _empty(self) -> None:
        """Removes what is ours and nothing else."""
        for pattern in (_JOB, _REPLACES, f"{TEMPORARY}*", f"part-*.{self.format.kind}"):
            for path in self.path.glob(pattern):
                path.unlink()

    def done(self) -> set[int]:
        """The parts that are done."""
        return numbers_of_parts(self.path, self.format.kind)

    def publish(self) -> None:
        """Makes the folder itself the output."""
        for name in (_REPLACES, _LOCK):
            (self.path / name).unlink(missing_ok=True)
        if self.output.exists():
            # No folder can take the place of another at once. A job that is killed here goes on with --resume.
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
            logger.warning("%s stays, since it has files that are not of this program", self.path)
        self.close()

    def close(self) -> None:
        """Lets others have the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
