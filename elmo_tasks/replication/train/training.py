"""One `allennlp train` in a process of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.train.outcome import Outcome
from elmo_tasks.replication.train.record import is_locked, locked, mark_finished, state_of, write_record

__all__ = ["ALLENNLP", "Training", "begin", "train"]

ALLENNLP = (sys.executable, "-m", "allennlp")

# Signals with which a user or a machine that is shut down ends a process.
_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# How long a process may take to end after a signal.
_SECONDS_TO_END = 30.0
_SECONDS_BETWEEN_LOOKS = 0.01


class Training:
    """
    A run that is being trained, from the start or from its last checkpoint.

    As long as its process lives, a lock on the folder is held, by the process itself: if this process is killed, the
    training continues, and no other process can start the same run. It is the leader of a process group of its own, so
    that Ctrl-C in a terminal reaches it, and all processes that it started, through `stop` alone.

    Whether a run is finished, interrupted or to run is decided by `state_of` in `elmo_tasks.replication.train.record`.

    # Parameters

    run
        The run.
    command
        How `allennlp` is called.
    n_threads
        How many threads it may compute with, unless `OMP_NUM_THREADS` is set; `None` leaves that to torch, which takes
        all cores.

    # Raises

    `BlockingIOError`
        If another process trains it.
    `ValueError`
        If its folder holds another run.
    `FileExistsError`
        If it is finished.
    """

    def __init__(self, run: Run, command: Sequence[str] = ALLENNLP, n_threads: int | None = None) -> None:
        self.run = run
        # Before anything in the folder is written or removed.
        state_of(run)
        self._log = run.folder / "log.txt"
        with locked(run.folder) as lock:
            # Another process may have ended since.
            state = state_of(run)
            if state == "finished":
                raise FileExistsError(f"{run.folder} is finished")
            write_record(run, resumes=state == "interrupted")
            config = run.folder / "config.json"
            with atomic_file(config) as temporary:
                temporary.write_text(json.dumps(run.config, indent=1), encoding="utf-8")
            directory = run.serialization_dir
            call = [*command, "train", str(config), "-s", str(directory), "--file-friendly-logging"]
            if state == "interrupted":
                call.append("--recover")
                # AllenNLP archives the best epoch when it is interrupted, which is not the end.
                (directory / "model.tar.gz").unlink(missing_ok=True)
            elif directory.exists():
                # Without a checkpoint there is nothing to resume from, and AllenNLP would refuse the folder.
                shutil.rmtree(directory)
            threads = {} if n_threads is None else {"OMP_NUM_THREADS": str(n_threads)}
            with open(self._log, "ab") as log:
                self._process = subprocess.Popen(
                    call,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[lock.fileno()],
                    process_group=0,
                    env={**threads, **os.environ},
                )

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def outcome(self) -> Outcome:
        """Waits for the end, and notes it in the record; that this is not possible is an error of this run alone."""
        code = self._process.wait()
        try:
            if code != 0 or not (self.run.serialization_dir / "metrics.json").is_file():
                last_line = _last_line(self._log)
                failure = f"{_ended(code)}: {last_line}"
                error = f"{failure} (all of it is in {self._log})"
                # What is ended from outside can be resumed; one that has caught the signal says so by its status.
                is_ended = {-code, code - 128} & set(_ENDINGS)
                return Outcome(self.run, error, None if is_ended else failure)
            mark_finished(self.run.folder)
        except (ValueError, OSError) as error:
            return Outcome(self.run, f"has ended with status {code}, but that cannot be noted: {error}")
        return Outcome(self.run)

    def stop(self) -> None:
        """
        Ends the process and those that it started, and waits until all of them are gone and the lock is free. Those
        that do not end by themselves are killed.
        """
        for ending in (signal.SIGTERM, signal.SIGKILL):
            if self._is_gone():
                return
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, ending)
            deadline = time.monotonic() + _SECONDS_TO_END
            while not self._is_gone() and time.monotonic() < deadline:
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _is_gone(self) -> bool:
        # All its processes have inherited the lock, so that the last of them frees it.
        return self.is_over() and not is_locked(self.run.folder)


def begin(run: Run, command: Sequence[str] = ALLENNLP, n_threads: int | None = None) -> Training | Outcome:
    """Begins a run; an error is returned as an outcome."""
    try:
        return Training(run, command, n_threads)
    except (ValueError, OSError) as error:
        is_finished = isinstance(error, FileExistsError) and run.folder.is_dir()
        # Another process has trained it since.
        return Outcome(run, None if is_finished else str(error))


def train(run: Run, command: Sequence[str] = ALLENNLP) -> Outcome:
    """Trains a run to its end; an error is in the outcome."""
    training = begin(run, command)
    if isinstance(training, Outcome):
        return training
    try:
        return training.outcome()
    except BaseException:
        training.stop()
        raise


def _ended(code: int) -> str:
    if code == -signal.SIGKILL:
        return "was killed by signal 9, as when the memory of the machine is exhausted"
    if code < 0:
        return f"was killed by signal {-code}"
    return f"ended with status {code}" if code else "ended without metrics.json"


def _last_line(log: Path) -> str:
    """Of the end of a log, which may be long."""
    with open(log, "rb") as file:
        file.seek(max(os.path.getsize(log) - 4096, 0))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
