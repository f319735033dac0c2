"""Building an index of words in context."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Literal

import numpy as np
from filelock import FileLock, Timeout

from elmo_tasks.analysis.neighbor_index import NeighborIndex
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
    with _locked(part / "lock"):
        _check_request(part / "request.json", request)
        n_done = _recover(part, elmo.dim * np.dtype(dtype).itemsize)
        missing = _after(sentences, part / "sentences.txt", n_done)
        _write(part, dtype, _embedded(elmo, missing, layer, batch_tokens), n_done, progress)
        _write_starts(part)
        (part / "index.json").write_text(json.dumps(request, indent=2) + "\n", encoding="utf-8")
        (part / "request.json").unlink()
        part.rename(folder)
    # Which the library may have removed itself.
    (folder / "lock").unlink(missing_ok=True)
    return NeighborIndex(folder)


def _part_of(folder: Path, dtype: str) -> Path:
    """The folder in which the index is built."""
    if dtype not in ("float16", "float32"):
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


def _check_request(path: Path, request: Mapping[str, object]) -> None:
    text = json.dumps(request)
    if not path.is_file():
        path.write_text(text, encoding="utf-8")
    elif (known := path.read_text(encoding="utf-8")) != text:
        raise ValueError(
            f"'{path.parent}' is an index that was interrupted, with the settings {known}, and can be resumed only "
            f"with the same, but now they are {text}: give the same, or remove the folder"
        )


def _recover(part: Path, row_bytes: int) -> int:
    """Cuts both files back to the sentences that are whole in both, and returns their number."""
    for name in ("vectors.bin", "sentences.txt"):
        (part / name).touch()
    n_rows = (part / "vectors.bin").stat().st_size // row_bytes
    n_words = n_bytes = n_sentences = 0
    with open(part / "sentences.txt", "rb") as file:
        for line in file:
            if not line.endswith(b"\n") or n_words + len(line.split()) > n_rows:
                break
            n_words, n_bytes, n_sentences = n_words + len(line.split()), n_bytes + len(line), n_sentences + 1
    for name, size in (("vectors.bin", n_words * row_bytes), ("sentences.txt", n_bytes)):
        with open(part / name, "r+b") as file:
            file.truncate(size)
    return n_sentences


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
    part: Path, dtype: str, embedded: Iterator[tuple[bytes, np.ndarray]], n_done: int, progress: bool | None
) -> None:
    with (
        open(part / "vectors.bin", "ab") as vectors,
        open(part / "sentences.txt", "ab") as lines,
        progress_bar(None, progress, "sentences") as advance,
    ):
        advance(n_done)
        for line, array in embedded:
            # Shape: (n_words, dim)
            unit = array / np.maximum(np.linalg.norm(array, axis=-1, keepdims=True), np.finfo(np.float32).tiny)
            vectors.write(unit.astype(dtype).tobytes())
            lines.write(line)
            advance(1)


def _write_starts(part: Path) -> None:
    with open(part / "sentences.txt", "rb") as file:
        sizes = [(len(line.split()), len(line)) for line in file]
    # Shape: (n_sentences + 1, 2)
    starts = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(np.array(sizes, np.int64).reshape(-1, 2), 0)])
    np.save(part / "starts.npy", starts[:, 0])
    np.save(part / "lines.npy", starts[:, 1])
