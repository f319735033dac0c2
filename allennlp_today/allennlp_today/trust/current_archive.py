"""
The archive that a context is loading, and whether it is trusted.

Trust belongs to one load: it is kept in context variables, so other threads and later loads do not
see it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path

__all__ = ["TRUST_HINT", "Loading", "is_trusted_by_context", "is_untrusted", "loading"]
__all__ += ["reading_from", "refuse_outside", "start_loading", "trusting"]

TRUST_HINT = "if you trust it, use --trust, or trusted=True in Python"


@dataclass(frozen=True)
class Loading:
    """
    The archive that is being loaded: what the user calls it, the folder with its files, and its
    file with weights.
    """

    archive: str
    folder: Path
    weights: Path
    trusted: bool


_LOADING: ContextVar[Loading | None] = ContextVar("loading", default=None)
# The name of the archive that a command trusts. `True`: all that it opens.
_TRUSTED: ContextVar[str | bool] = ContextVar("trusted", default=False)


def start_loading(archive: Loading) -> None:
    """From now on, this context loads the archive."""
    _LOADING.set(archive)


def is_trusted_by_context(archive: str) -> bool:
    """
    Whether an archive of this name is trusted although the call does not say so: because the
    command trusts it, or because a trusted archive names it.
    """
    outer = _LOADING.get()
    return _TRUSTED.get() in (archive, True) or (outer is not None and outer.trusted)


def loading() -> Loading | None:
    """
    The archive that this context is loading: its `folder`, its file with `weights`, and whether it
    is `trusted`.
    """
    return _LOADING.get()


def is_untrusted() -> bool:
    """Whether this context is loading an archive that is not trusted."""
    archive = _LOADING.get()
    return archive is not None and not archive.trusted


def refuse_outside(path: str | PathLike[str]) -> str:
    """
    Returns the path. Raises a `ConfigurationError` if it leads out of the archive that is being
    loaded, and that archive is not trusted.
    """
    from allennlp.common.checks import ConfigurationError

    from allennlp_today.trust.walk import is_inside

    archive = _LOADING.get()
    if archive is None or archive.trusted:
        return fspath(path)
    if not is_inside(path, archive.folder):
        message = f"expected a file in the archive, got {path}: {archive.archive} ({TRUST_HINT})"
        raise ConfigurationError(message)
    return fspath(path)


@contextmanager
def reading_from(folder: Path) -> Iterator[None]:
    """
    While an archive is loaded: files in this folder, which a repair has written, instead of the
    archive's.
    """
    archive = _LOADING.get()
    assert archive is not None
    token = _LOADING.set(replace(archive, folder=folder.resolve()))
    try:
        yield
    finally:
        _LOADING.reset(token)


@contextmanager
def trusting(archive: str | bool) -> Iterator[None]:
    """A block that trusts the archive of this name, or with `True` all that it opens."""
    token = _TRUSTED.set(archive)
    try:
        yield
    finally:
        _TRUSTED.reset(token)
