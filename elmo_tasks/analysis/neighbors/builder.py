"""Building an index of words in context."""

import logging
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock, Timeout

from elmo_tasks.analysis.neighbors.files import (
    ABOUT,
    DIGEST,
    DTYPES,
    LINES,
    PRECISION,
    SENTENCES,
    STARTS,
    Layer,
    tag_file,
    vector_files,
)
from elmo_tasks.analysis.neighbors.growing_files import LOCK, RECORD, GrowingFiles
from elmo_tasks.analysis.neighbors.identity import digest_of
from elmo_tasks.analysis.neighbors.index import NeighborIndex
from elmo_tasks.analysis.neighbors.text import TAGS, TaggedSentence
from elmo_tasks.files.atomic_files import atomic_file, sync
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import write_sealed
from elmo_tasks.progress import progress_bar
from elmo_tasks.vectors.elmo import Elmo

__all__ = ["build_index"]

logger = logging.getLogger(__name__)

# The largest of int8, which has one more negative number than positive ones.
_LARGEST = 127


def build_index(
    elmo: Elmo,
    sentences: Iterable[Sequence[str] | TaggedSentence],
    folder: str | PathLike[str],
    *,
    layer: Layer | Sequence[Layer] = "top",
    dtype: Literal["float16", "float32", "int8"] = "float16",
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
        Lists of words without white space, or tagged sentences; however many, since they are read as they are needed.
    folder
        The new index.
    layer
        The layer, as in `Elmo.embed_iter`, or several, each of which takes the space of one.
    dtype
        The type of the numbers: float16 has cosines that are right to about 0.0003, int8 takes half its space, with
        cosines that are right to about 0.005.
    about
        Entries to keep with the index, such as the name of the biLM.
    batch_tokens, progress
        See `Elmo.embed_iter`.

    # Raises

    `FileExistsError`
        If the folder is there already, or another process is building it.
    `ValueError`
        If text, biLM or settings are not those of the index that was interrupted, or there is no text, or one without
        words, or a word has white space in it, or some sentences are tagged and some are not.
    """
    folder = Path(folder)
    layers = _checked_layers(layer, elmo)
    part = _part_of(folder, dtype)
    text, tags = _with_tags(sentences)
    request = {**(about or {}), **_request(elmo, layers, tags), "dtype": dtype}
    names = [*vector_files(layers).values(), SENTENCES, *map(tag_file, tags)]
    with _locked(part / LOCK):
        with GrowingFiles(part, names, request) as files:
            missing = _after(text, bool(tags), [part / name for name in names[len(layers) :]], files.n_items)
            _write(files, dtype, _embedded(elmo, missing, layers, batch_tokens), progress)
        if not (part / names[0]).stat().st_size:
            shutil.rmtree(part)
            raise ValueError("the text must have at least one word, but has none")
        _finish(part, folder, request, files.digests)
    # Only now, so that a folder without a record is never a half-built index; the library may have removed its lock.
    for name in (RECORD, LOCK):
        (folder / name).unlink(missing_ok=True)
    return NeighborIndex(folder)


def _request(elmo: Elmo, layers: list[Layer], tags: Sequence[str]) -> dict[str, object]:
    """What the vectors are of, as an index says it."""
    return {
        # One layer as all versions have it, so that they can read the index.
        **({"layer": layers[0]} if len(layers) == 1 else {"layers": layers}),
        **({"tags": list(tags)} if tags else {}),
        "dim": elmo.dim,
        DIGEST: digest_of(elmo),
        **({} if elmo.bilm.precision == "float32" else {PRECISION: elmo.bilm.precision}),
    }


def _checked_layers(layer: Layer | Sequence[Layer], elmo: Elmo) -> list[Layer]:
    layers: list[Layer] = [layer] if isinstance(layer, str | int) else list(layer)
    for each in layers:
        if each not in ("mix", "top") and not (type(each) is int and 0 <= each < elmo.n_layers):
            raise ValueError(
                f"layers must be 'mix', 'top' or a number from 0 (context-insensitive) to {elmo.n_layers - 1}, but "
                f"there is {each!r}"
            )
    if not layers or len({elmo.n_layers - 1 if each == "top" else each for each in layers}) < len(layers):
        raise ValueError(f"layers must be one or more, each once, but are {layers!r}")
    return layers


def _with_tags(
    sentences: Iterable[Sequence[str] | TaggedSentence],
) -> tuple[Iterator[Sequence[str] | TaggedSentence], Sequence[str]]:
    """The sentences, and the kinds of tags that the first one has."""
    rest = iter(sentences)
    first = next(rest, None)
    if first is None:
        raise ValueError("the text must hold at least one sentence, but is empty")
    return chain([first], rest), TAGS if isinstance(first, TaggedSentence) else ()


def _part_of(folder: Path, dtype: str) -> Path:
    """The folder in which the index is built."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(repr, DTYPES))}, but is {dtype!r}")
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


def _after(
    sentences: Iterator[Sequence[str] | TaggedSentence], is_tagged: bool, paths: Sequence[Path], n_done: int
) -> Iterator[list[bytes]]:
    """The lines of the sentences that are not in the index yet, after a check that those before are the same."""
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "rb")) for path in paths]
        for number in range(n_done):
            sentence = next(sentences, None)
            lines = [b"" for _ in files] if sentence is None else _lines(sentence, is_tagged)
            if lines != [file.readline() for file in files]:
                raise ValueError(
                    f"'{paths[0].parent}' is an index that was interrupted, and can be resumed only with the same "
                    f"text, but sentence {number} of the text is now {lines[0].decode().strip()!r:.100}: name the same "
                    "text, or remove the folder"
                )
    for sentence in sentences:
        yield _lines(sentence, is_tagged)


def _lines(sentence: Sequence[str] | TaggedSentence, is_tagged: bool) -> list[bytes]:
    """The words, and the tags of each kind if there are tags."""
    if isinstance(sentence, TaggedSentence) is not is_tagged:
        raise ValueError(f"the sentences of a text must all have tags, or none, but one differs: {sentence!r:.100}")
    columns: Any = sentence if is_tagged else [sentence]
    lines = []
    for column in columns:
        line = " ".join(column)
        if line.split() != list(column) or len(column) != len(columns[0]):
            raise ValueError(
                "words must be without white space, and not empty, and have a tag of each kind if there are tags, but "
                f"the text has {column!r:.100}"
            )
        lines.append(f"{line}\n".encode())
    return lines


def _embedded(
    elmo: Elmo, lines: Iterator[list[bytes]], layers: Sequence[Layer], batch_tokens: int
) -> Iterator[tuple[list[bytes], list[np.ndarray]]]:
    """The lines of each sentence, and its vectors in each layer."""
    waiting: deque[list[bytes]] = deque()

    def sentences() -> Iterator[list[str]]:
        for each in lines:
            waiting.append(each)
            yield each[0].decode().split()

    wanted = layers[0] if len(layers) == 1 else "all"
    for array in elmo.embed_iter(sentences(), layers=wanted, batch_tokens=batch_tokens, progress=False):
        yield waiting.popleft(), [array] if len(layers) == 1 else [_of_layer(array, layer) for layer in layers]


def _of_layer(array: np.ndarray, layer: Layer) -> np.ndarray:
    """Of all layers, shape `(n_layers, n_words, dim)`, one or their mean."""
    mixed: np.ndarray = array.mean(0) if layer == "mix" else array[-1 if layer == "top" else layer]
    return mixed


def _write(
    files: GrowingFiles, dtype: str, embedded: Iterator[tuple[list[bytes], list[np.ndarray]]], progress: bool | None
) -> None:
    with progress_bar(None, progress, "sentences") as advance:
        advance(files.n_items)
        for lines, arrays in embedded:
            files.append(*(_stored(array, dtype).tobytes() for array in arrays), *lines)
            advance(1)


def _stored(array: np.ndarray, dtype: str) -> np.ndarray:
    """Vectors of the length 1; of int8, which has no fractions, of the length that fills its range."""
    tiny = np.finfo(np.float32).tiny
    if dtype == "int8":
        scaled: np.ndarray = _LARGEST * (array / np.maximum(np.abs(array).max(-1, keepdims=True), tiny))
        return scaled.round().astype(DTYPES[dtype])
    # Shape: (n_words, dim)
    unit: np.ndarray = array / np.maximum(np.linalg.norm(array, axis=-1, keepdims=True), tiny)
    return unit.astype(DTYPES[dtype])


def _finish(part: Path, folder: Path, request: dict[str, object], digests: dict[str, str]) -> None:
    """Writes what is computed from the whole text, and gives the index its name."""
    _write_starts(part)
    of_starts = {name: sha256_of(part / name) for name in (STARTS, LINES)}
    write_sealed(part / ABOUT, {**request, "files": {**digests, **of_starts}})
    part.rename(folder)
    sync(folder.parent)


def _write_starts(part: Path) -> None:
    with open(part / SENTENCES, "rb") as file:
        sizes = [(len(line.decode().split()), len(line)) for line in file]
    # Shape: (n_sentences + 1, 2)
    starts = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(np.array(sizes, np.int64).reshape(-1, 2), 0)])
    for name, column in ((STARTS, 0), (LINES, 1)):
        with atomic_file(part / name) as temporary:
            np.save(temporary, starts[:, column].astype("<i8"))
