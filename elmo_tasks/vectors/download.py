"""Downloads that leave a whole file or none."""

import hashlib
import sys
import time
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.request import urlopen

from elmo_tasks.atomic_files import atomic_file

__all__ = ["download", "file_digest"]

_TIMEOUT = 30.0
_BYTES_AT_ONCE = 1 << 20
# A long download reports how far it is, this often, in seconds.
_REPORT_EVERY = 5.0


def file_digest(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def download(url: str, file: Path, sha256: str | None = None) -> str:
    """
    Downloads a file under another name and moves it to its place when it is complete, so that neither an interruption
    nor another process that does the same leaves half a file. A long download reports on stderr how far it is.

    # Parameters

    url
        Where it is.
    file
        Where to put it. Its folder is made.
    sha256
        The SHA-256 that it must have, in hexadecimal digits, if that is known.

    # Returns

    `str`
        Its SHA-256.

    # Raises

    `ConnectionError`
        If it cannot be read to its end.
    `ValueError`
        If it has another digest.
    `OSError`
        If it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with atomic_file(file) as temporary:
            with open(temporary, "wb") as opened:
                digest = _copy(url, opened)
            if sha256 is not None and digest != sha256:
                raise ValueError(
                    f"the SHA-256 of {url} must be {sha256}, but is {digest}: it was damaged on the way, or is another "
                    "file. Remedy: try again; if that does not help, download it elsewhere and give the folder"
                )
    except OSError as error:
        if error.errno is not None and error.filename is None:
            # The error of a full disk does not have the name of the file.
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
