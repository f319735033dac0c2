"""
The vectors of a text with one sentence per line, in a file.

The text is cut into parts of some hundred lines. Each part becomes a file in `OUTPUT.parts`, written under a temporary
name and renamed, so that it exists whole or not at all. That is all there is to resuming: a job computes the parts that
are missing, with any number of processes, and then puts all parts into one file.
"""

import argparse
import json
import logging
import multiprocessing
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from tqdm import tqdm

from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.json_files import read_json, sha256_of, write_json
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.shipped import DEFAULT_BILM
from elmo_tasks.text import add_nfc_argument, in_nfc
from elmo_tasks.version import __version__

if TYPE_CHECKING:
    from elmo_tasks.vectors.elmo import Elmo

__all__ = ["DESCRIPTION", "EmbedOptions", "Hdf5Layout", "add_arguments", "embed", "embed_file"]

logger = logging.getLogger(__name__)

DESCRIPTION = "Write the ELMo vectors of a text, one sentence per line, into a file."
Part = tuple[int, list[str]]
"""The number of a part, and its lines."""


@dataclass(frozen=True)
class EmbedOptions:
    """
    The vectors that are made of the lines of a text.

    # Parameters

    bilm
        A name or a folder, see `Elmo.from_pretrained`; or two files, see `Elmo.from_files`.
    layers, weights, gamma, pool, batch_tokens
        See `Elmo.embed_iter`.
    tokenize
        Whether spaCy's rules split a line into words, as `Elmo.embed` splits a string. `False`: white space does.
    dtype
        Of the vectors in the file.
    device, precision
        See `Elmo.from_pretrained`.
    part_lines
        How many lines are done together, and lost together if the job is killed.
    nfc
        Whether the text is normalised to NFC first. A word has other bytes, and other vectors, in another form.
    """

    bilm: str | tuple[str, str] = DEFAULT_BILM
    layers: str | int = "mix"
    weights: tuple[float, ...] | None = None
    gamma: float = 1.0
    pool: str | None = None
    batch_tokens: int | None = None
    tokenize: bool = False
    dtype: Literal["float32", "float16"] = "float32"
    device: str | None = None
    precision: str | None = None
    part_lines: int = 500
    nfc: bool = True


@dataclass(frozen=True)
class Hdf5Layout:
    """
    What is in an HDF5 file besides the vectors: `sentences`, the words of each line, and `sentence_to_index`, which
    AllenNLP's readers look for. `sentence_keys`: the vectors of a line have the sentence as their name, not its index.
    """

    sentence_keys: bool = False
    with_sentences: bool = True
    with_index: bool = True

    @classmethod
    def of_allennlp(cls, forget_sentences: bool, use_sentence_keys: bool) -> "Hdf5Layout":
        """The layout of AllenNLP before 1.0 with these options."""
        return cls(use_sentence_keys, with_sentences=False, with_index=not (forget_sentences or use_sentence_keys))


def embed_file(
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: EmbedOptions | None = None,
    *,
    layout: Hdf5Layout | None = None,
    force: bool = False,
    resume: bool = False,
    workers: int = 1,
    ray: str | None = None,
    progress: bool | None = None,
    elmo: "Elmo | None" = None,
) -> int:
    """
    Writes the vectors of a text into a file.

    # Parameters

    text
        A file with one sentence per line, UTF-8; plain, `.gz` or `.xz`.
    output
        The file: Parquet if its name ends with `.parquet`, and HDF5 otherwise.
    options
        The vectors.
    layout
        Of an HDF5 file.
    force
        Whether to start again, and to replace an output that exists.
    resume
        Whether to keep the parts of an interrupted job with the same text and options.
    workers
        Processes, each with its own biLM.
    ray
        The address of a Ray cluster on which the workers run. They need the same files and folders.
    progress
        Whether to show a bar on stderr. `None`: if it is a terminal.
    elmo
        The biLM, if it is loaded already.

    # Returns

    `int`
        The number of lines.

    # Raises

    `FileExistsError`
        If the output exists, or the parts of an interrupted job.
    `ValueError`
        If the parts belong to a different job, or the text is not UTF-8.
    `OSError`
        If the disk is too small for the vectors.
    """
    text, output, options = Path(text), Path(output), options or EmbedOptions()
    check_not_input(output, text)
    folder = output.with_name(f"{output.name}.parts")
    if force:
        shutil.rmtree(folder, ignore_errors=True)
    elif output.exists() or (folder.exists() and not resume):
        raise FileExistsError(f"{output if output.exists() else folder} exists: use --resume or --force")
    elmo = elmo or _load(options)
    n_lines = n_tokens = 0
    for _, line in numbered_lines(text):
        n_lines, n_tokens = n_lines + 1, n_tokens + len(line.split())
    _check_space(output, elmo, options, n_lines if options.pool else n_tokens)
    job = _job(text, elmo, options)
    folder.mkdir(exist_ok=True)
    _check_same_job(folder, job)
    missing = (part for part in _parts_of(text, options) if not _part_file(folder, part[0]).exists())
    done = min(n_lines, options.part_lines * sum(1 for _ in folder.glob("part-*.npz")))
    n_cut = 0
    disable = None if progress is None else not progress
    try:
        with tqdm(total=n_lines, initial=done, unit="line", disable=disable) as bar:
            for n_done, n_cut_now in _computed(missing, _Worker(options, folder, elmo), workers, ray):
                bar.update(n_done)
                n_cut += n_cut_now
        _finish(folder, output, job, layout or Hdf5Layout())
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted: the same command with --resume continues") from None
    if n_cut:
        logger.warning("%d words longer than 48 bytes were cut", n_cut)
    return n_lines


def _load(options: EmbedOptions) -> "Elmo":
    # A kernel for each number of rows takes up to half a megabyte, and oneDNN keeps 1,024 by default.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
    from elmo_tasks.vectors.elmo import Elmo

    keywords: Any = {"device": options.device, "precision": options.precision}
    if isinstance(options.bilm, tuple):
        return Elmo.from_files(*options.bilm, **keywords)
    return Elmo.from_pretrained(options.bilm, **keywords)


def _check_space(output: Path, elmo: "Elmo", options: EmbedOptions, n_vectors: int) -> None:
    n_layers = elmo.n_layers if options.layers == "all" else 1
    needed = n_vectors * n_layers * elmo.dim * np.dtype(options.dtype).itemsize
    # Once as parts, and once as the output.
    if (free := shutil.disk_usage(output.parent).free) < 2 * needed:
        raise OSError(f"the vectors take {2 * needed:,} bytes with their parts, but the disk has {free:,}: {output}")


def _job(text: Path, elmo: "Elmo", options: EmbedOptions) -> dict[str, Any]:
    """All that the vectors depend on, as JSON."""
    from elmo_tasks.bilm.lstm.frozen import bilm_digest

    weights = bilm_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()
    job = {**asdict(options), "bilm": weights, "text": sha256_of(text), "elmo_tasks": __version__}
    return json.loads(json.dumps(job))  # type: ignore[no-any-return]


def _check_same_job(folder: Path, job: dict[str, Any]) -> None:
    file = folder / "job.json"
    if not file.exists():
        write_json(file, job)
    before = read_json(file)
    if changed := [f"{key} was {before.get(key)!r}, now {job[key]!r}" for key in job if before.get(key) != job[key]]:
        raise ValueError(f"{folder} belongs to a different job ({', '.join(changed)}): use --force to start again")


def _parts_of(text: Path, options: EmbedOptions) -> Iterator[Part]:
    lines = (line for _, line in numbered_lines(text))
    for number in count():
        if not (part := list(islice(lines, options.part_lines))):
            return
        yield number, part


def _part_file(folder: Path, number: int) -> Path:
    return folder / f"part-{number:08}.npz"


class _Worker:
    """Writes the file of a part. In another process it loads its own biLM for the first part."""

    def __init__(self, options: EmbedOptions, folder: Path, elmo: "Elmo | None", threads: int | None = None) -> None:
        self.options, self.folder, self.elmo, self.threads = options, folder, elmo, threads

    def __call__(self, part: Part) -> tuple[int, int]:
        """Returns the number of lines, and of words that were cut."""
        from elmo_tasks.bilm.characters import is_cut

        if self.elmo is None:
            import torch

            torch.set_num_threads(self.threads or 1)
            self.elmo = _load(self.options)
        number, lines = part
        sentences = [self._words(line) for line in lines]
        keys = ("layers", "weights", "gamma", "pool", "batch_tokens")
        arguments: Any = {key: getattr(self.options, key) for key in keys}
        vectors = self.elmo.embed(sentences, progress=False, **arguments)
        # One array for all lines: writing many takes longer than computing them.
        with np.errstate(over="ignore"):
            flat = np.concatenate([array.ravel() for array in vectors]).astype(self.options.dtype)
        if not np.isfinite(flat).all():
            raise ValueError(f"vectors of part {number} exceed {self.options.dtype}: use float32 or a smaller gamma")
        text = "\n".join(" ".join(words) for words in sentences).encode()
        with atomic_file(_part_file(self.folder, number)) as temporary, open(temporary, "wb") as file:
            shapes = np.array([array.shape for array in vectors])
            np.savez(file, lines=np.frombuffer(text, np.uint8), shapes=shapes, vectors=flat)
        return len(lines), sum(is_cut(word) for words in sentences for word in words)

    def _words(self, line: str) -> list[str]:
        line = in_nfc(line) if self.options.nfc else line
        if not self.options.tokenize:
            return line.split()
        from elmo_tasks.tokenization import blank_tokenizer

        return blank_tokenizer()(line)


_worker: _Worker


def _start_worker(*arguments: Any) -> None:
    global _worker
    _worker = _Worker(*arguments)


def _run_worker(part: Part) -> tuple[int, int]:
    return _worker(part)


def _computed(parts: Iterator[Part], worker: _Worker, workers: int, ray: str | None) -> Iterator[tuple[int, int]]:
    """What the worker returns for each part, here or in other processes."""
    if workers == 1 and ray is None:
        yield from map(worker, parts)
        return
    arguments = worker.options, worker.folder.absolute(), None, max(1, (os.cpu_count() or 1) // workers)
    if ray is not None:
        from ray.util.multiprocessing import Pool

        pool: Any = Pool(workers, _start_worker, arguments, ray_address=ray)
    else:
        # A process that is forked after torch has started its threads can hang.
        pool = multiprocessing.get_context("spawn").Pool(workers, _start_worker, arguments)
    started = {process.pid for process in multiprocessing.active_children()}
    with pool:
        results = pool.imap(_run_worker, parts)
        while True:
            try:
                yield results.next(timeout=5)
            except StopIteration:
                return
            except multiprocessing.TimeoutError:
                # A pool replaces a process that was killed, but never computes its part.
                if ray is None and {process.pid for process in multiprocessing.active_children()} != started:
                    raise RuntimeError("a worker was killed, possibly for its memory: resume with fewer") from None


def _finish(folder: Path, output: Path, job: dict[str, Any], layout: Hdf5Layout) -> None:
    with atomic_file(output) as temporary:
        if output.suffix == ".parquet":
            _write_parquet(temporary, _read_parts(folder), job)
        else:
            _write_hdf5(temporary, _read_parts(folder), job, layout)
    shutil.rmtree(folder)


def _read_parts(folder: Path) -> Iterator[tuple[list[str], list[np.ndarray]]]:
    for file in sorted(folder.glob("part-*.npz")):
        with np.load(file) as part:
            shapes, flat, lines = part["shapes"], part["vectors"], part["lines"].tobytes().decode().split("\n")
        ends = np.cumsum(shapes.prod(-1))[:-1]
        yield lines, [array.reshape(shape) for array, shape in zip(np.split(flat, ends), shapes, strict=True)]


def _write_hdf5(
    path: Path, parts: Iterator[tuple[list[str], list[np.ndarray]]], job: dict[str, Any], layout: Hdf5Layout
) -> None:
    """The layout of AllenNLP's former `elmo` command: one dataset per line, named "0", "1", ..."""
    import h5py

    sentences: list[str] = []
    strings = h5py.string_dtype()
    # In this order when the file is iterated.
    with h5py.File(path, "w", libver=("v110", "v110"), track_order=True) as file:
        file.attrs["elmo_tasks"] = json.dumps(job)
        for lines, vectors in parts:
            for index, (line, array) in enumerate(zip(lines, vectors, strict=True), start=len(sentences)):
                checked = {"fletcher32": True, "chunks": array.shape} if array.size else {}
                file.create_dataset(line if layout.sentence_keys else str(index), data=array, **checked)
            sentences += lines
        if layout.with_sentences:
            file.create_dataset("sentences", data=sentences, dtype=strings)
        if layout.with_index:
            # Of equal sentences the last.
            index_of = {sentence: str(index) for index, sentence in enumerate(sentences)}
            file.create_dataset("sentence_to_index", data=[json.dumps(index_of)], dtype=strings)


def _write_parquet(path: Path, parts: Iterator[tuple[list[str], list[np.ndarray]]], job: dict[str, Any]) -> None:
    """Rows of `index`, `sentence`, `shape` and `vectors` (flat), with one row group per part."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    schema = pyarrow.schema(
        [
            ("index", pyarrow.int64()),
            ("sentence", pyarrow.string()),
            ("shape", pyarrow.list_(pyarrow.int32())),
            ("vectors", pyarrow.large_list(pyarrow.from_numpy_dtype(np.dtype(job["dtype"])))),
        ],
        metadata={"elmo_tasks": json.dumps(job)},
    )
    first = 0
    with ParquetWriter(path, schema, use_dictionary=False, write_page_checksum=True) as writer:
        for lines, vectors in parts:
            offsets = np.cumsum([0, *(array.size for array in vectors)])
            flat = np.concatenate([array.ravel() for array in vectors])
            columns = [
                np.arange(first, first + len(lines)),
                lines,
                [list(array.shape) for array in vectors],
                pyarrow.LargeListArray.from_arrays(offsets, flat),
            ]
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=len(lines))
            first += len(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the job to a parser."""
    default = EmbedOptions()
    parser.add_argument("text", type=Path, help="file with one sentence per line, UTF-8; plain, .gz or .xz")
    parser.add_argument("output", type=Path, help="file to write: Parquet if its name ends so, and HDF5 otherwise")
    parser.add_argument("--bilm", default=default.bilm, help="name, or folder with options.json and weights.hdf5")
    parser.add_argument("--layers", type=_layers, default=default.layers, help="mix (default), all, top, or a number")
    parser.add_argument("--weights", type=float, nargs="+", help="of the mix, before their softmax; default: all 0")
    parser.add_argument("--gamma", type=float, default=default.gamma, help="factor of the vectors")
    parser.add_argument("--pool", choices=["mean", "max", "first-last"], help="one vector per sentence, not per word")
    parser.add_argument("--tokenize", action="store_true", help="split lines by spaCy's rules, not at white space")
    add_nfc_argument(parser, default=default.nfc)
    parser.add_argument("--dtype", choices=["float32", "float16"], default=default.dtype, help="of the output")
    parser.add_argument("--device", help="cpu, cuda, cuda:1, ...; default: a GPU if there is one")
    parser.add_argument("--precision", choices=["float32", "bf16"], help="of the biLM's matrix products")
    parser.add_argument("--batch-tokens", type=int, default=default.batch_tokens, help="words computed at once")
    parser.add_argument("--part-lines", type=int, default=default.part_lines, help="lines that are done together")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes, each with its biLM")
    parser.add_argument("--ray", metavar="ADDRESS", help="run the workers on a Ray cluster with a shared folder")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--force", action="store_true", help="start again, and replace an output that exists")
    again.add_argument("--resume", action="store_true", help="keep what an interrupted job has done")
    parser.add_argument("--progress", action=argparse.BooleanOptionalAction, help="default: on a terminal")


def _layers(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdecimal() else text


def embed(arguments: argparse.Namespace) -> None:
    """Runs the job of a command line."""
    values = {field.name: getattr(arguments, field.name) for field in fields(EmbedOptions)}
    values["weights"] = arguments.weights and tuple(arguments.weights)
    others = ("force", "resume", "workers", "ray", "progress")
    keywords: Any = {name: getattr(arguments, name) for name in others}
    n_lines = embed_file(arguments.text, arguments.output, EmbedOptions(**values), **keywords)
    print(f"wrote {arguments.output}: {n_lines:,} lines, {arguments.output.stat().st_size:,} bytes")
