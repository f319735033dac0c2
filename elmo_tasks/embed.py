"""
Writes the vectors of a text, one sentence per line, to a file.

The text is split into parts of a few hundred lines. A job (`elmo_tasks.jobs`) writes the missing parts, and then joins
all parts into one file, or for a Parquet data set only renames the folder.
"""

import argparse
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm import tqdm

from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.json_files import file_digest
from elmo_tasks.jobs import JOB, Part, job_folder, missing_parts, written
from elmo_tasks.shipped import DEFAULT_BILM
from elmo_tasks.text import in_nfc, words_of_text
from elmo_tasks.text.formats import text_sentences, warn_if_untokenised
from elmo_tasks.version import __version__

if TYPE_CHECKING:
    from elmo_tasks.vectors.elmo import Elmo

__all__ = ["DESCRIPTION", "EmbedOptions", "add_arguments", "embed", "embed_file"]

logger = logging.getLogger(__name__)

DESCRIPTION = "Write the ELMo vectors of a text, one sentence per line, into a file."
_ENDINGS = (".h5", ".hdf5", ".parquet")
_Sentence = str | list[str]
_Vectors = Iterable[tuple[list[str], list[np.ndarray]]]


class _Lengths(NamedTuple):
    lines: int
    words: int
    cut_words: int
    words_of_part: int
    """Of the longest part."""


def _layers(text: str) -> str | int:
    return int(text) if text.isdecimal() else text


@dataclass(frozen=True)
class EmbedOptions:
    """
    The vectors to compute for each line of a text: see `Elmo.from_pretrained` and `Elmo.embed_iter`. `tokenize` is the
    `tokenizer` of `Elmo`, except a function, or `"letters"`, and `part_lines` lines are computed and written together.
    """

    bilm: str = DEFAULT_BILM
    layers: str | int = "mix"
    weights: tuple[float, ...] | None = None
    gamma: float = 1.0
    pool: str | None = None
    tokenize: str = "whitespace"
    dtype: str = "float32"
    device: str | None = None
    precision: str | None = None
    batch_tokens: int | None = None
    part_lines: int = 500


_ARGUMENTS: dict[str, dict[str, Any]] = {
    "bilm": {"help": "name, or folder with options.json and weights.hdf5"},
    "layers": {"type": _layers, "help": "mix, all, top, or a number"},
    "weights": {"type": float, "nargs": "+", "help": "one per layer of the mix, before the softmax; default: all 0"},
    "gamma": {"type": float, "help": "factor of the vectors"},
    "pool": {"choices": ["mean", "max", "first-last"], "help": "write one vector per sentence instead of per word"},
    "tokenize": {"help": "letters (of lines or FASTA), or spaCy's rules for en, de, ...; default: whitespace"},
    "dtype": {"choices": ["float32", "float16"], "help": "type of the numbers in the output"},
    "device": {"help": "cpu, cuda, cuda:1, ...; default: a GPU if there is one"},
    "precision": {"choices": ["float32", "bf16", "int8", "auto"], "help": "of the biLM's products; default: float32"},
    "batch_tokens": {"type": int, "help": "words per batch; default: 4096, on a GPU 16384"},
    "part_lines": {"type": int, "help": "lines per part; an interrupted job loses at most the parts in progress"},
}


def embed_file(
    text: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: EmbedOptions | None = None,
    *,
    force: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    elmo: "Elmo | None" = None,
) -> int:
    """
    Writes the vectors of a text to a file and returns the number of lines. After an interruption, the same call
    computes only the missing parts.

    # Parameters

    text, output
        The text is UTF-8, plain, `.gz` or `.xz`: see `text_sentences`. The output is HDF5 (`.h5`, `.hdf5`), Parquet
        (`.parquet`), or, if its name ends with a slash, a folder of Parquet files, one per part.
    force
        Whether to replace an existing output or the parts of an interrupted job.
    workers, ray
        The number of processes, each with its own biLM, and the address of a Ray cluster that runs them. `None`: only
        this process, or all cores of the cluster. All machines need the same folders.
    elmo
        The biLM, if it is already loaded. Workers load their own.
    """
    is_folder = os.fspath(output).endswith("/")
    text, output, options = Path(text), Path(output), options or EmbedOptions()
    if not is_folder and output.suffix not in _ENDINGS:
        raise ValueError(f"expected an output that ends with {', '.join(_ENDINGS)}, or / for a folder, got {output}")
    check_not_input(output, text)
    folder = output.with_name(f"{output.name}.parts")
    if output.exists() and not force:
        raise FileExistsError(f"{output} exists: use --force (force=True) to replace it")
    elmo = elmo or _loaded(options.bilm, options.device, options.precision)
    # The same for all workers, also on other machines.
    options = replace(options, precision=elmo.bilm.precision)
    job = _job_of(text, options, elmo)
    lengths = _count(text, options)
    with job_folder(folder, job, force=force):
        if force:
            _remove(output)
        _check_space(folder, is_folder, options, elmo, lengths, workers or 1)
        done = min(lengths.lines, options.part_lines * len(list(folder.glob("part-*"))))
        suffix = ".parquet" if is_folder else ".npz"
        parts = missing_parts(_sentences(text, options), folder, suffix, options.part_lines)
        # Other processes load their own biLM.
        here = elmo if workers is None and ray is None else None
        write = partial(_write_part, options, job, elmo=here)
        on_gpu = (options.device or "").startswith("cuda")
        with tqdm(total=lengths.lines, initial=done, unit="line", disable=None) as bar:
            for n_part_lines in written(parts, write, workers=workers, ray=ray, on_gpu=on_gpu):
                bar.update(n_part_lines)
        if is_folder:
            folder.replace(output)
            (output / JOB).unlink()
        else:
            _join(folder, output, job)
    return lengths.lines


def _remove(output: Path) -> None:
    """Removes an output, if there is one. A folder with other files is an error."""
    for file in [*output.glob("part-*.parquet"), output / JOB] if output.is_dir() else [output]:
        file.unlink(missing_ok=True)
    if output.is_dir():
        output.rmdir()


def _check_space(
    folder: Path, is_folder: bool, options: EmbedOptions, elmo: "Elmo", lengths: _Lengths, n_processes: int
) -> None:
    n_numbers = elmo.dim * (elmo.n_layers if options.layers == "all" else 1)
    n_vectors = lengths.lines if options.pool else lengths.words
    n_of_part = options.part_lines if options.pool else lengths.words_of_part
    # For the parts and the output, which are the same in a folder. HDF5 ends the process if the disk is full.
    on_disk = (1 if is_folder else 2) * n_vectors * n_numbers * np.dtype(options.dtype).itemsize
    on_disk -= sum(file.stat().st_size for file in folder.iterdir())
    # Of each process, a part and its copy.
    in_memory = 8 * n_of_part * n_numbers * n_processes
    disk, memory = shutil.disk_usage(folder).free, _free_memory()
    for needed, free, where in ((on_disk, disk, folder), (in_memory, memory, "memory: use smaller parts (part_lines)")):
        if free < needed:
            raise OSError(f"expected {needed:,} free bytes for the output and its parts, got {free:,}: {where}")
    # ELMoForManyLangs counts characters, not bytes.
    if lengths.cut_words and elmo.bilm.options.dictionaries is None:
        logger.warning("%d words longer than 48 bytes are cut", lengths.cut_words)


@lru_cache(maxsize=1)
def _loaded(bilm: str, device: str | None, precision: Any) -> "Elmo":
    from elmo_tasks.vectors.elmo import Elmo

    return Elmo.from_pretrained(bilm, device=device, precision=precision)


def _count(text: Path, options: EmbedOptions) -> _Lengths:
    """Reads the whole text, so an error in any line is raised here."""
    from elmo_tasks.bilm.characters import MAX_BYTES

    n_lines = n_words = n_cut = n_of_part = n_of_longest = 0
    for sentence in _sentences(text, options):
        words = words_of_text(sentence, "whitespace") if isinstance(sentence, str) else sentence
        n_of_part = len(words) + (n_of_part if n_lines % options.part_lines else 0)
        n_of_longest = max(n_of_longest, n_of_part)
        n_lines += 1
        n_words += len(words)
        n_cut += sum(len(word.encode()) > MAX_BYTES for word in words)
    return _Lengths(n_lines, n_words, n_cut, n_of_longest)


def _sentences(text: Path, options: EmbedOptions) -> Iterator[_Sentence]:
    sentences = text_sentences(text, letters=options.tokenize == "letters")
    each = (in_nfc(part) if isinstance(part, str) else list(map(in_nfc, part)) for _, part in sentences)
    return warn_if_untokenised(each, text) if options.tokenize == "whitespace" else each


def _free_memory() -> int:
    """Of the machine, where Linux states it. The limit of a container may be lower."""
    of_linux = Path("/proc/meminfo")
    return 1024 * int(of_linux.read_text().partition("MemAvailable:")[2].split()[0]) if of_linux.exists() else 2**63


def _job_of(text: Path, options: EmbedOptions, elmo: "Elmo") -> dict[str, Any]:
    """Everything that the vectors depend on, as JSON."""
    from elmo_tasks.bilm.digest import weights_digest

    weights = weights_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()
    values = {**asdict(options), "device": None, "bilm": weights, "text": file_digest(text), "elmo_tasks": __version__}
    values["kernel"] = elmo.bilm.kernel
    job: dict[str, Any] = json.loads(json.dumps(values))
    return job


def _write_part(options: EmbedOptions, job: dict[str, Any], part: Part[_Sentence], elmo: "Elmo | None") -> int:
    path, first, lines = part
    elmo = elmo or _loaded(options.bilm, options.device, options.precision)
    sentences = [words_of_text(line, options.tokenize) if isinstance(line, str) else line for line in lines]
    arguments: Any = {key: getattr(options, key) for key in ("layers", "weights", "gamma", "pool", "batch_tokens")}
    vectors = elmo.embed(sentences, progress=False, **arguments)
    if path.suffix == ".parquet":
        with atomic_file(path) as temporary:
            _write_parquet(temporary, [([" ".join(words) for words in sentences], vectors)], job, first)
        return len(lines)
    # One array for all lines: writing many takes longer than computing them.
    flat = np.concatenate([array.ravel() for array in vectors]).astype(options.dtype, copy=False)
    words = np.frombuffer("\n".join(map(" ".join, sentences)).encode(), np.uint8)
    with atomic_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, lines=words, shapes=np.array([array.shape for array in vectors]), vectors=flat)
    return len(lines)


def _join(folder: Path, output: Path, job: dict[str, Any]) -> None:
    # Written in the folder, so a killed job leaves nothing elsewhere.
    whole = folder / f"whole{output.suffix}"
    with atomic_file(whole) as temporary:
        if output.suffix == ".parquet":
            _write_parquet(temporary, _read_parts(folder), job)
        else:
            _write_hdf5(temporary, _read_parts(folder), job)
    os.replace(whole, output)
    shutil.rmtree(folder)


def _read_parts(folder: Path) -> _Vectors:
    for file in sorted(folder.glob("part-*.npz")):
        with np.load(file) as part:
            shapes, flat, lines = part["shapes"], part["vectors"], part["lines"].tobytes().decode().split("\n")
        ends = np.cumsum(shapes.prod(-1))[:-1]
        yield lines, [array.reshape(shape) for array, shape in zip(np.split(flat, ends), shapes, strict=True)]


def _write_hdf5(path: Path, parts: _Vectors, job: dict[str, Any]) -> None:
    """
    The layout of AllenNLP's former `elmo` command: one array per line, named "0", "1", ..., and `sentence_to_index`, a
    JSON object with the number of each sentence (the last one of equal sentences). `sentences` are in addition.
    """
    import h5py

    sentences: list[str] = []
    # `track_order` keeps the order of the lines, instead of "0", "1", "10".
    with h5py.File(path, "w", libver=("v110", "v110"), track_order=True) as file:
        file.attrs["elmo_tasks"] = json.dumps(job)
        for lines, vectors in parts:
            for number, array in enumerate(vectors, start=len(sentences)):
                # HDF5 has no larger chunks, and no checksum without chunks.
                checked = {"fletcher32": True, "chunks": array.shape} if 0 < array.nbytes < 2**32 else {}
                file.create_dataset(str(number), data=array, **checked)
            sentences += lines
        file.create_dataset("sentences", data=sentences, dtype=h5py.string_dtype())
        index = json.dumps({sentence: str(number) for number, sentence in enumerate(sentences)})
        file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())


def _write_parquet(path: Path, parts: _Vectors, job: dict[str, Any], first: int = 0) -> None:
    """Rows of `index`, `sentence`, `shape` and `vectors` (flat), with one row group per part."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    vectors_type = pyarrow.large_list(pyarrow.from_numpy_dtype(np.dtype(job["dtype"])))
    types = {"index": pyarrow.int64(), "sentence": pyarrow.string(), "shape": pyarrow.list_(pyarrow.int32())}
    schema = pyarrow.schema({**types, "vectors": vectors_type}, metadata={"elmo_tasks": json.dumps(job)})
    with ParquetWriter(path, schema, use_dictionary=False, write_page_checksum=True) as writer:
        for lines, vectors in parts:
            offsets = np.cumsum([0, *(array.size for array in vectors)])
            flat = pyarrow.LargeListArray.from_arrays(
                offsets, np.concatenate([array.ravel() for array in vectors]).astype(job["dtype"], copy=False)
            )
            indices = np.arange(first, first := first + len(lines))
            columns = [indices, lines, [list(array.shape) for array in vectors], flat]
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=len(lines))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the job to a parser."""
    add = parser.add_argument
    add("text", type=Path, help="file with one sentence per line, UTF-8; plain, .gz or .xz")
    add("output", help="to write: .h5 or .hdf5, .parquet, or a name that ends with / for a folder of Parquet files")
    for name, of_argument in _ARGUMENTS.items():
        add(f"--{name.replace('_', '-')}", default=getattr(EmbedOptions, name), **of_argument)
    add("--workers", type=int, metavar="N", help="processes, each with its own biLM; default: one, on Ray one per core")
    add("--ray", metavar="ADDRESS", help="run the workers on a Ray cluster; all machines need the same folders")
    add("--force", action="store_true", help="replace an existing output or the parts of an interrupted job")


def embed(arguments: argparse.Namespace) -> None:
    """Runs the job with the arguments of a command line."""
    options = {option.name: getattr(arguments, option.name) for option in fields(EmbedOptions)}
    options["weights"] = arguments.weights and tuple(arguments.weights)
    others = {name: getattr(arguments, name) for name in ("force", "workers", "ray")}
    n_lines = embed_file(arguments.text, arguments.output, EmbedOptions(**options), **others)
    output = Path(arguments.output)
    n_bytes = sum(file.stat().st_size for file in (output.iterdir() if output.is_dir() else [output]))
    print(f"wrote {arguments.output}: {n_lines:,} lines, {n_bytes:,} bytes")
