"""Files from the network: whole or not at all."""

import hashlib
import os
import sys
import tempfile
import time
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

__all__ = ["download", "file_digest"]

_TIMEOUT = 30.0
_BYTES_AT_ONCE = 1 << 20
# What takes longer says how far it is, this often, in seconds.
_REPORT_EVERY = 5.0


def file_digest(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def download(url: str, file: Path, sha256: str | None = None) -> str:
    """
    Downloads a file under another name and moves it to its place when it is there whole, so that neither a break nor
    another process that does the same leaves half a file. A download that takes long says so on stderr.

    # Parameters

    url : `str`
        Where it is.
    file : `Path`
        Where to put it. Its folder is made.
    sha256 : `str`, optional (default = `None`)
        What its SHA-256 must be, in hexadecimal digits, if that is known.

    # Returns

    `str`
        Its SHA-256.

    # Raises

    `ConnectionError`
        If it cannot be read to its end.
    `ValueError`
        If it is another file than the digest says.
    `OSError`
        If it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=file.parent, prefix=f"{file.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as opened:
            digest = _copy(url, opened)
        if sha256 is not None and digest != sha256:
            raise ValueError(
                f"the SHA-256 of {url} must be {sha256}, but is {digest}: it was damaged on the way, or is another "
                "file. Remedy: try again; if it stays so, download it elsewhere and give the folder"
            )
        # mkstemp lets nobody else read it; a cache may be shared.
        os.chmod(part, 0o644)
        os.replace(part, file)
    except BaseException as error:
        Path(part).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            # A disk that is full does not say which.
            raise OSError(error.errno, error.strerror, str(file)) from error
        raise
    return digest


def _copy(url: str, opened: IO[bytes]) -> str:
    digest = hashlib.sha256()
    n_bytes = 0
    reported = time.monotonic()
    try:
        response = urlopen(url, timeout=_TIMEOUT)
    except (URLError, HTTPException, OSError) as error:
        raise _unreachable(url, error) from error
    with response:
        total = int(response.headers.get("Content-Length") or 0)
        while True:
            try:
                block = response.read(_BYTES_AT_ONCE)
            except (HTTPException, OSError) as error:
                raise _unreachable(url, error) from error
            if not block:
                break
            opened.write(block)
            digest.update(block)
            n_bytes += len(block)
            if time.monotonic() - reported > _REPORT_EVERY:
                reported = time.monotonic()
                of_total = f" of {total / 1e6:,.0f}" if total else ""
                print(f"elmo_tasks: {n_bytes / 1e6:,.0f}{of_total} MB of {url}", file=sys.stderr)
    if n_bytes < total:
        raise _unreachable(url, f"it ended after {n_bytes:,} of {total:,} bytes")
    return digest.hexdigest()


def _unreachable(url: str, reason: object) -> ConnectionError:
    return ConnectionError(f"{url} cannot be downloaded: {reason}")
