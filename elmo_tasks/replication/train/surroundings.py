"""The code and the machine that a training ran with."""

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

from elmo_tasks.version import __version__

__all__ = ["commit", "machine", "n_cores", "versions"]

_PACKAGE = Path(__file__).resolve().parents[2]
# Results and documentation do not change what is computed.
_CODE = ("elmo_tasks", "training_configs", "fixtures")


def versions() -> dict[str, str]:
    """Of this package, and of those that compute."""
    return {"elmo_tasks": __version__, **{name: metadata.version(name) for name in ("allennlp", "torch")}}


def commit(checkout: Path = _PACKAGE.parent) -> str | None:
    """
    # Returns

    `Optional[str]`
        The commit of a checkout, with `-dirty` after it if the code was changed since; `None` where there is no git, or
        the package was installed from a wheel.
    """
    # The folder of packages may lie in some other repository.
    if not (checkout / ".git").exists():
        return None
    try:
        head = _git(checkout, "rev-parse", "--short=12", "HEAD")
        changes = _git(checkout, "status", "--porcelain", "--untracked-files=no", "--", *_CODE)
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}-dirty" if changes else head


def _git(checkout: Path, *arguments: str) -> str:
    call = ["git", "-C", str(checkout), "--no-optional-locks", *arguments]
    return subprocess.run(call, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


@cache
def machine() -> str:
    """The kind of this machine: its GPU if torch has one, or else its processor; and how many cores there are."""
    import torch

    processor = torch.cuda.get_device_name() if torch.cuda.is_available() else _processor()
    n = n_cores()
    return f"{processor}, {n} {'core' if n == 1 else 'cores'}"


def n_cores() -> int:
    """The cores that this process may use; all of the machine where the system does not say which, as on macOS."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
