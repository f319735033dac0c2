"""One `allennlp train` in a process of its own."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.train.outcome import Outcome
from elmo_tasks.replication.train.record import mark_finished, state_of, write_record

__all__ = ["ALLENNLP", "Training", "begin", "train"]

ALLENNLP = (sys.executable, "-m", "allennlp")


class Training:
    """
    A run that is being trained: begun anew, or gone on with where it has a checkpoint.

    As long as its process lives, a lock on the folder is held, by the process itself: should we be killed, it goes on,
    and nobody begins the same run beside it.

    # Parameters

    run : `Run`
        The run.
    command : `Sequence[str]`, optional (default = `ALLENNLP`)
        How `allennlp` is called.
    n_threads : `int`, optional (default = `None`)
        How many threads it may compute with, where `OMP_NUM_THREADS` does not say it already; `None` leaves that to
        torch, which takes all cores.

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
        run.folder.mkdir(parents=True, exist_ok=True)
        self._log = run.folder / "log.txt"
        with open(run.folder / "lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have ended since.
            state = state_of(run)
            if state == "finished":
                raise FileExistsError(f"{run.folder} is finished: call this again to see its scores")
            write_record(run)
            config = run.folder / "config.json"
            config.write_text(json.dumps(run.config, indent=1), encoding="utf-8")
            directory = run.serialization_dir
            call = [*command, "train", str(config), "-s", str(directory), "--file-friendly-logging"]
            if state == "broken off":
                call.append("--recover")
                # What AllenNLP leaves of the best epoch when it is interrupted is not the end.
                (directory / "model.tar.gz").unlink(missing_ok=True)
            elif directory.exists():
                # Without a checkpoint there is nothing to go on from, and AllenNLP would refuse the folder.
                shutil.rmtree(directory)
            threads = {} if n_threads is None else {"OMP_NUM_THREADS": str(n_threads)}
            with open(self._log, "ab") as log:
                self._process = subprocess.Popen(
                    call,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[lock.fileno()],
                    env={**threads, **os.environ},
                )

    def is_over(self) -> bool:
        return self._process.poll() is not None

    def outcome(self) -> Outcome:
        """Waits for the end, and notes it in the record."""
        code = self._process.wait()
        if code != 0:
            ended = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
            return Outcome(self.run, f"{ended}: {_last_line(self._log)} (all of it is in {self._log})")
        if not (self.run.serialization_dir / "metrics.json").is_file():
            return Outcome(self.run, f"ended without metrics.json: {_last_line(self._log)} (see {self._log})")
        mark_finished(self.run.folder)
        return Outcome(self.run)

    def stop(self) -> None:
        """Ends the process, and waits for that."""
        self._process.terminate()
        self._process.wait()


def begin(run: Run, command: Sequence[str] = ALLENNLP, n_threads: int | None = None) -> Training | Outcome:
    """Begins a run; what goes wrong with that is an outcome."""
    try:
        return Training(run, command, n_threads)
    except BlockingIOError:
        return Outcome(run, "is being trained by another process: wait for it, and call this again")
    except (ValueError, OSError) as error:
        return Outcome(run, str(error))


def train(run: Run, command: Sequence[str] = ALLENNLP) -> Outcome:
    """Trains a run to its end; what goes wrong is in the outcome."""
    training = begin(run, command)
    if isinstance(training, Outcome):
        return training
    try:
        return training.outcome()
    except BaseException:
        training.stop()
        raise


def _last_line(log: Path) -> str:
    """Of the end of a log, which may be long."""
    with open(log, "rb") as file:
        file.seek(max(os.path.getsize(log) - 4096, 0))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
