"""Downloads that leave a whole file or none."""

import os
import sys
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from elmo_tasks.files.atomic_files import atomic_file, remove_leftovers
from elmo_tasks.files.checksums import sha256_of

__all__ = ["download", "https_opener"]

_SCHEMES = ("https",)
_TIMEOUT = 30.0
_BYTES_AT_ONCE = 1 << 20
# A long download reports how far it is, this often, in seconds.
_REPORT_EVERY = 5.0


def download(
    url: str, file: Path, *, max_bytes: int, check: Callable[[Path], object], sha256: str | None = None
) -> None:
    """
    Downloads a file under another name and moves it to its place when it is complete, so that neither an interruption
    nor another process that does the same leaves half a file. What a killed process left is removed after a day. A long
    download reports on stderr how far it is.

    # Parameters

    url
        Where it is; `https`, as must be all to which it is redirected.
    file
        Where to put it. Its folder is made, and only this user may write to both.
    max_bytes
        The most that it can have.
    check
        Opens the file before it is moved to its place, and raises a `ValueError` if it is not of the right kind: a
        server that does not say how long a file is may send a part of it.
    sha256
        The SHA-256 that it must have, in hexadecimal digits, if that is known.

    # Raises

    `ConnectionError`
        If it cannot be read to its end, is too large, or is not to be had by `https` alone.
    `ValueError`
        If it has another digest, or `check` finds it wrong.
    `OSError`
        If it cannot be written.
    """
    file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    remove_leftovers(file)
    with atomic_file(file) as temporary:
        # Not writable for the group, whatever the user's mask: see `check_ownership`.
        with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, 0o644)) as opened:
            _copy(url, opened, max_bytes)
        if sha256 is not None and (digest := sha256_of(temporary)) != sha256:
            raise ValueError(
                f"the SHA-256 of {url} must be {sha256}, but is {digest}: it was damaged on the way, or is another "
                "file. Remedy: try again; if that does not help, download it elsewhere and give the folder"
            )
        try:
            check(temporary)
        except ValueError as error:
            raise ValueError(
                f"{url} was not downloaded whole, or is another file: {str(error).replace(str(temporary), url)}"
            ) from error


def https_opener(url: str) -> OpenerDirector:
    """
    An opener that reads `https` alone, wherever it is redirected to.

    # Raises

    `URLError`
        If the address itself is another.
    """
    _check_scheme(url)
    return build_opener(_CheckedRedirects)


class _CheckedRedirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(url: str) -> None:
    if urlsplit(url).scheme not in _SCHEMES:
        raise URLError(f"only https is used, but its address is {url!r:.200}")


def _copy(url: str, opened: IO[bytes], max_bytes: int) -> None:
    n_bytes = 0
    reported = time.monotonic()
    try:
        response = https_opener(url).open(url, timeout=_TIMEOUT)
    except (HTTPException, OSError, ValueError) as error:
        raise _unreachable(url, error) from error
    with response:
        length = response.headers.get("Content-Length", "").strip()
        if length and not (length.isascii() and length.isdecimal() and len(length) < 20):
            raise _unreachable(url, f"the server says that it has {length!r:.50} bytes")
        total = int(length or 0)
        while n_bytes <= max_bytes and total <= max_bytes:
            try:
                block = response.read(_BYTES_AT_ONCE)
            except (HTTPException, OSError) as error:
                raise _unreachable(url, error) from error
            if not block:
                break
            opened.write(block)
            n_bytes += len(block)
            if time.monotonic() - reported > _REPORT_EVERY:
                reported = time.monotonic()
                of_total = f" of {total / 1e6:,.0f}" if total else ""
                print(f"elmo_tasks: {n_bytes / 1e6:,.0f}{of_total} MB of {url}", file=sys.stderr)
        else:
            raise _unreachable(url, f"it must have at most {max_bytes:,} bytes, but has more")
    if n_bytes < total:
        raise _unreachable(url, f"it ended after {n_bytes:,} of {total:,} bytes")


def _unreachable(url: str, reason: object) -> ConnectionError:
    # Some of urllib's messages have several lines.
    return ConnectionError(f"{url} cannot be downloaded: {' '.join(str(reason).split())}")
