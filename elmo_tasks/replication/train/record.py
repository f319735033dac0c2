"""The record in the folder of a run, and how far the run is."""

import fcntl
import json
import tarfile
import time
import zlib
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.atomic_files import atomic_file
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.version import __version__

__all__ = [
    "RunStatus",
    "differences",
    "is_locked",
    "is_whole",
    "mark_finished",
    "read_record",
    "state_of",
    "status",
    "write_record",
]

RunStatus = Literal["finished", "interrupted", "to run", "in progress"]

_FILE = "record.json"


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
    return "in progress" if state != "finished" and is_locked(run.folder / "lock") else state


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
    """The record of a run, if there is one."""
    file = folder / _FILE
    if not file.is_file():
        return None
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return record


def write_record(run: Run) -> None:
    """Before the training, so that nothing in the folder is ever without its record."""
    about = {"identity": run.identity, "digest": run.digest, "about": run.about, "versions": _versions()}
    _write(run.folder, {**about, "finished": None})


def mark_finished(folder: Path) -> None:
    """After the training."""
    record = read_record(folder)
    if record is None:
        raise FileNotFoundError(f"{folder} must have a {_FILE}, but has none: was it removed while it was trained?")
    _write(folder, {**record, "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})


def is_whole(serialization_dir: Path) -> bool:
    """
    Whether a training came to its end after the process that had started it was killed: AllenNLP writes `metrics.json`
    and then, in place, the archive.
    """
    if not (serialization_dir / "metrics.json").is_file():
        return False
    try:
        with tarfile.open(serialization_dir / "model.tar.gz") as archive:
            return "weights.th" in archive.getnames()
    except (OSError, EOFError, tarfile.TarError, zlib.error):
        return False


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a run."""
    if not path.exists():
        return False
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in ("allennlp", "torch")}
    return {"elmo_tasks": __version__, **packages}


def _write(folder: Path, record: dict[str, Any]) -> None:
    with atomic_file(folder / _FILE) as file:
        file.write_text(json.dumps(record, indent=1), encoding="utf-8")
