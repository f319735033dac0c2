"""Building an index of words in context."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock, Timeout

from elmo_tasks.analysis.growing_files import LOCK, RECORD, GrowingFiles
from elmo_tasks.analysis.neighbor_index import ABOUT, DTYPES, LINES, SENTENCES, STARTS, VECTORS, NeighborIndex
from elmo_tasks.files.atomic_files import atomic_file, sync
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import write_sealed
from elmo_tasks.progress import progress_bar
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["build_index"]


def build_index(
    elmo: Elmo,
    sentences: Iterable[Sequence[str]],
    folder: str | PathLike[str],
    *,
    layer: Literal["mix", "top"] | int = "top",
    dtype: Literal["float16", "float32"] = "float16",
    about: dict[str, str] | None = None,
    batch_tokens: int = 4096,
    progress: bool | None = None,
) -> NeighborIndex:
    """
    Embeds a text into a new index. It is built in `FOLDER.part`, which gets its name when it is whole; the same call
    resumes an index that was interrupted, after the last sentence that is there.

    # Parameters

    elmo
        Of any biLM.
    sentences
        Lists of words without white space; however many, since they are read as they are needed.
    folder
        The new index.
    layer
        The layer, as in `Elmo.embed_iter`.
    dtype
        The type of the numbers: float16 takes half the space, with cosines that are right to about 0.0003.
    about
        Entries to keep with the index, such as the name of the biLM.
    batch_tokens, progress
        See `Elmo.embed_iter`.

    # Raises

    `FileExistsError`
        If the folder is there already, or another process is building it.
    `ValueError`
        If text or settings are not those of the index that was interrupted, or there is no text, or a word has white
        space in it.
    """
    folder = Path(folder)
    part = _part_of(folder, dtype)
    request: dict[str, object] = {**(about or {}), "layer": layer, "dim": elmo.dim, "dtype": dtype}
    with _locked(part / LOCK):
        with GrowingFiles(part, (VECTORS, SENTENCES), request) as files:
            missing = _after(sentences, part / SENTENCES, files.n_items)
            _write(files, DTYPES[dtype], _embedded(elmo, missing, layer, batch_tokens), progress)
        _write_starts(part)
        digests = {**files.digests, **{name: sha256_of(part / name) for name in (STARTS, LINES)}}
        write_sealed(part / ABOUT, {**request, "files": digests})
        part.rename(folder)
        sync(folder.parent)
    # Only now, so that a folder without a record is never a half-built index; the library may have removed its lock.
    for name in (RECORD, LOCK):
        (folder / name).unlink(missing_ok=True)
    return NeighborIndex(folder)


def _part_of(folder: Path, dtype: str) -> Path:
    """The folder in which the index is built."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be 'float16' or 'float32', but is {dtype!r}")
    if folder.exists():
        raise FileExistsError(f"the folder of a new index must not be there yet, but '{folder}' is: name another")
    part = folder.with_name(f"{folder.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    return part


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise FileExistsError(
            f"one process alone can build an index, but another is building '{path.parent}': wait for it"
        ) from None
    try:
        yield
    finally:
        lock.release()


def _after(sentences: Iterable[Sequence[str]], path: Path, n_done: int) -> Iterator[bytes]:
    """The lines of the sentences that are not in the index yet, after a check that those before are the same."""
    rest = iter(sentences)
    with open(path, "rb") as file:
        for number in range(n_done):
            line = _line(next(rest, []))
            if line != file.readline():
                raise ValueError(
                    f"'{path.parent}' is an index that was interrupted, and can be resumed only with the same text, "
                    f"but sentence {number} of the text is now {line.decode().strip()!r:.100}: name the same text, or "
                    "remove the folder"
                )
    first = next(rest, None)
    if first is None and not n_done:
        raise ValueError("the text must hold at least one sentence, but is empty")
    yield from map(_line, chain([] if first is None else [first], rest))


def _line(words: Sequence[str]) -> bytes:
    line = " ".join(words)
    if line.split() != list(words):
        raise ValueError(f"words must be without white space, and not empty, but the text has {words!r:.100}")
    return f"{line}\n".encode()


def _embedded(
    elmo: Elmo, lines: Iterator[bytes], layer: Literal["mix", "top"] | int, batch_tokens: int
) -> Iterator[tuple[bytes, np.ndarray]]:
    waiting: deque[bytes] = deque()

    def sentences() -> Iterator[list[str]]:
        for line in lines:
            waiting.append(line)
            yield line.decode().split()

    for array in elmo.embed_iter(sentences(), layers=layer, batch_tokens=batch_tokens, progress=False):
        yield waiting.popleft(), array


def _write(
    files: GrowingFiles, dtype: np.dtype[Any], embedded: Iterator[tuple[bytes, np.ndarray]], progress: bool | None
) -> None:
    with progress_bar(None, progress, "sentences") as advance:
        advance(files.n_items)
        for line, array in embedded:
            # Shape: (n_words, dim)
            unit = array / np.maximum(np.linalg.norm(array, axis=-1, keepdims=True), np.finfo(np.float32).tiny)
            files.append(unit.astype(dtype).tobytes(), line)
            advance(1)


def _write_starts(part: Path) -> None:
    with open(part / SENTENCES, "rb") as file:
        sizes = [(len(line.decode().split()), len(line)) for line in file]
    # Shape: (n_sentences + 1, 2)
    starts = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(np.array(sizes, np.int64).reshape(-1, 2), 0)])
    for name, column in ((STARTS, 0), (LINES, 1)):
        with atomic_file(part / name) as temporary:
            np.save(temporary, starts[:, column].astype("<i8"))
