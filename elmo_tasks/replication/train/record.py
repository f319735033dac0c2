"""The record in the folder of a run, and how far the run is."""

import fcntl
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal

from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import extracted_archive

from elmo_tasks.files.atomic_files import is_full
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import check_listed_file, listed_files, read_sealed, write_sealed
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.train.surroundings import commit, machine, versions

__all__ = [
    "RunStatus",
    "check_scores",
    "clear",
    "differences",
    "is_locked",
    "is_whole",
    "locked",
    "mark_finished",
    "read_record",
    "state_of",
    "status",
    "training_seconds",
    "write_record",
]

RunStatus = Literal["finished", "interrupted", "to run", "in progress"]

_FILE = "record.json"
_LOCK = "lock"
# A look of another process at the lock holds it for a moment.
_SECONDS_FOR_A_LOOK = 0.2
_KEYS: dict[str, Any] = {
    "identity": dict,
    "digest": str,
    "about": dict,
    "versions": dict,
    "finished": (str, type(None)),
}


def status(run: Run) -> RunStatus:
    """
    # Returns

    `RunStatus`
        `"in progress"` where another process trains it now; else see `state_of`.

    # Raises

    `ValueError`
        If the folder holds another run.
    """
    state = state_of(run)
    return "in progress" if state != "finished" and is_locked(run.folder) else state


def state_of(run: Run) -> RunStatus:
    """
    # Returns

    `RunStatus`
        How far a run is, whether or not it is being trained now: `"interrupted"` where there is a checkpoint to resume
        from.

    # Raises

    `ValueError`
        If the folder holds another run.
    """
    record = read_record(run.folder)
    if record is None:
        if run.serialization_dir.exists():
            raise ValueError(
                f"{run.folder} must be a run of this command, with its {_FILE}, but has none: "
                "move it away, or name another folder with --results"
            )
        return "to run"
    different = differences(record["identity"], run.identity)
    if different:
        raise ValueError(
            f"{run.folder} must hold the run that is asked for, but holds another: {'; '.join(different[:5])}; "
            "name another folder with --results, or move this one away"
        )
    if (record["finished"] or is_whole(run.serialization_dir)) and (run.serialization_dir / "metrics.json").is_file():
        return "finished"
    return "interrupted" if any(run.serialization_dir.glob("model_state_*.th")) else "to run"


def differences(recorded: Any, asked: Any, name: str = "") -> list[str]:
    """One sentence for each value in which two identities differ."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        keys = sorted({*recorded, *asked})
        return [
            sentence
            for key in keys
            for sentence in differences(recorded.get(key), asked.get(key), f"{name}.{key}".lstrip("."))
        ]
    return [] if recorded == asked else [f"{name} is {json.dumps(recorded)}, not {json.dumps(asked)}"]


def read_record(folder: Path) -> dict[str, Any] | None:
    """
    The record of a run, if there is one.

    # Raises

    `ValueError`
        If it is damaged, or of an earlier version, which had no checksum and did not read all of the data.
    """
    file = folder / _FILE
    if not file.is_file():
        return None
    try:
        record = read_sealed(file)
        wrong = [key for key, kind in _KEYS.items() if not isinstance(record.get(key), kind)]
        if wrong:
            raise ValueError(
                f"{file} must have '{wrong[0]}', as a run writes it, but has {record.get(wrong[0])!r:.100}"
            )
        listed_files(file, record)
    except ValueError as error:
        raise ValueError(
            f"{error}: move the folder away, or name another with --results, and the run is trained again"
        ) from None
    return record


def check_scores(folder: Path) -> None:
    """
    # Raises

    `ValueError`, `FileNotFoundError`
        If the scores of a finished run are not those that it ended with.
    """
    file = folder / _FILE
    for path, digest in listed_files(file, read_record(folder) or {}).items():
        check_listed_file(path, digest, file)


def write_record(run: Run, *, resumes: bool = False) -> None:
    """
    Before the training, so that nothing in the folder is ever without its record.

    # Parameters

    run
        The run.
    resumes
        Whether the training resumes from a checkpoint: it then has all commits and machines, and the time of all parts.
    """
    before = (read_record(run.folder) or {}) if resumes else {}
    earlier = before.get("training", {})
    training = {
        "started": time.time(),
        "seconds": training_seconds(run.folder, before),
        "commits": _with(earlier.get("commits", []), commit()),
        "machines": _with(earlier.get("machines", []), machine()),
    }
    about = {"identity": run.identity, "digest": run.digest, "about": run.about, "versions": versions()}
    write_sealed(run.folder / _FILE, {**about, "training": training, "finished": None})


def training_seconds(folder: Path, record: dict[str, Any]) -> float:
    """The time that a run has taken so far, over all its parts, until its log was last written to."""
    training = record.get("training")
    if training is None:
        return 0.0
    # Of a finished run it is known: a copy of its folder may have other times.
    if (in_all := training.get("seconds_in_all")) is not None:
        return float(in_all)
    log = folder / "log.txt"
    last = max(0.0, log.stat().st_mtime - training["started"]) if log.exists() else 0.0
    return float(training["seconds"]) + last


def _with(values: list[str], value: str | None) -> list[str]:
    return values if value is None or value in values else [*values, value]


def mark_finished(folder: Path) -> None:
    """After the training, with the checksums of its scores."""
    record = read_record(folder)
    if record is None:
        raise FileNotFoundError(f"{folder} must have a {_FILE}, but has none: was it removed while it was trained?")
    scores = {path.relative_to(folder).as_posix(): sha256_of(path) for path in sorted(folder.glob("run/metrics*.json"))}
    finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if (training := record.get("training")) is not None:
        training["seconds_in_all"] = training_seconds(folder, record)
    write_sealed(folder / _FILE, {**record, "finished": finished, "files": scores})


def is_whole(serialization_dir: Path) -> bool:
    """
    Whether a training came to its end after the process that had started it was killed: AllenNLP writes `metrics.json`
    and then the archive.
    """
    if not (serialization_dir / "metrics.json").is_file():
        return False
    try:
        with extracted_archive(serialization_dir / "model.tar.gz") as folder:
            return Path(folder, "weights.th").is_file()
    except (OSError, ConfigurationError) as error:
        if is_full(error):
            raise
        return False


def clear(folder: Path) -> None:
    """
    Removes what is in the folder of a run, but for its lock, which the caller holds.

    # Raises

    `OSError`
        If that is not possible. The record is the last that is removed: what is left is still known for what it is.
    """
    for path in sorted(folder.iterdir(), key=lambda path: path.name == _FILE):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[BinaryIO]:
    """
    Holds the lock of a run, and makes its folder if there is none. A process that inherits the open file holds the lock
    until it ends.

    # Raises

    `BlockingIOError`
        If another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Not the library filelock, whose lock a child process cannot inherit.
    with open(folder / _LOCK, "ab") as lock:
        deadline = time.monotonic() + _SECONDS_FOR_A_LOOK
        while not _lock(lock, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise BlockingIOError("is being trained by another process: wait for it, and run the command again")
            time.sleep(_SECONDS_FOR_A_LOOK / 20)
        yield lock


def is_locked(folder: Path) -> bool:
    """Whether a process holds the lock of a run."""
    path = folder / _LOCK
    if not path.exists():
        return False
    with open(path, "rb") as file:
        return not _lock(file, fcntl.LOCK_SH)


def _lock(file: BinaryIO, kind: int) -> bool:
    """Locks a file, until it is closed, unless another process holds it; whether it could."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
