"""Downloads that resume where an earlier one was interrupted."""

import re
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request

from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.progress import progress_bar
from elmo_tasks.vectors.download import https_opener

__all__ = ["download_resumably"]

_TIMEOUT = 60.0
_BYTES_AT_ONCE = 2**18
_RANGE_NOT_SATISFIABLE = 416


def download_resumably(url: str, file: Path, *, n_bytes: int | None, max_bytes: int, sha256: str | None) -> None:
    """
    Downloads a file to `NAME.part` next to it, and renames that when it is complete. What there is of it when the
    download is interrupted stays, and the next call asks the server for the rest, if size or digest are known; a server
    that cannot do that sends all of it again.

    # Parameters

    url
        Where it is; `https`, as must be all to which it is redirected.
    file
        Where to put it. If it is there, it is only checked.
    n_bytes, sha256
        The size and the SHA-256 that it must have, if they are known.
    max_bytes
        The most that it can have.

    # Raises

    `ConnectionError`
        If it cannot be read to its end, or is too large.
    `ValueError`
        If it has another size or digest; then it is removed.
    `OSError`
        If it cannot be written.
    """
    if not file.exists():
        part = file.with_name(f"{file.name}.part")
        if n_bytes is None and sha256 is None:
            # Its owner may have published another file meanwhile: nothing would tell that half of it is the old one.
            part.unlink(missing_ok=True)
        _download(url, part, max_bytes if n_bytes is None else n_bytes)
        part.replace(file)
    found = file.stat().st_size
    problem = None
    if n_bytes is not None and found != n_bytes:
        problem = f"must have {n_bytes:,} bytes, but has {found:,}"
    elif sha256 is not None and (digest := sha256_of(file)) != sha256:
        problem = f"must have the SHA-256 {sha256}, but has {digest}"
    if problem is not None:
        file.unlink()
        raise ValueError(
            f"{url} {problem}: it was damaged on the way, or its owner has published another file. Remedy: run the "
            "command again; if that does not help, download it elsewhere"
        )


def _download(url: str, part: Path, max_bytes: int) -> None:
    done = part.stat().st_size if part.exists() else 0
    headers = {"Range": f"bytes={done}-"} if done else {}
    try:
        response = https_opener(url).open(Request(url, headers=headers), timeout=_TIMEOUT)
    except HTTPError as error:
        if done and error.code == _RANGE_NOT_SATISFIABLE:
            # There was no rest: the part is whole, or another file than that of today. Its digest decides.
            return
        raise _interrupted(url, part, error) from error
    except (HTTPException, OSError, ValueError) as error:
        raise _interrupted(url, part, error) from error
    with response:
        if done and not _is_rest(response.headers.get("Content-Range", ""), done):
            done = 0
        length = response.headers.get("Content-Length", "")
        total = done + int(length) if length.isascii() and length.isdecimal() else None
        if total is not None and total > max_bytes:
            raise _interrupted(url, part, f"it must have at most {max_bytes:,} bytes, but has {total:,}")
        name = Path(urlsplit(url).path).name
        with open(part, "ab" if done else "wb") as target, progress_bar(total, True, f"B of {name}", done) as advance:
            try:
                while block := response.read(_BYTES_AT_ONCE):
                    done += len(block)
                    if done > max_bytes:
                        part.unlink()
                        raise ValueError(f"it must have at most {max_bytes:,} bytes, but has more")
                    target.write(block)
                    advance(len(block))
            except (HTTPException, ConnectionError, TimeoutError, ValueError) as error:
                raise _interrupted(url, part, error) from error
    if total is not None and done < total:
        raise _interrupted(url, part, f"it ended after {done:,} of {total:,} bytes")


def _is_rest(content_range: str, start: int) -> bool:
    """Whether a server sends what was asked for, as `bytes 500-999/1000`."""
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", content_range.strip())
    return found is not None and int(found[1]) == start


def _interrupted(url: str, part: Path, reason: object) -> ConnectionError:
    # Some of urllib's messages have several lines.
    kept = f"; the {part.stat().st_size:,} bytes that came are in {part}" if part.exists() else ""
    return ConnectionError(f"{url} cannot be downloaded: {' '.join(str(reason).split())}{kept}")
