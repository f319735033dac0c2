"""Writes the vectors of a text, one sentence per line, to a file, as a job (`elmo_tasks.jobs`)."""

import argparse
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elmo_tasks.extras import needs
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.json_files import file_digest
from elmo_tasks.jobs import FileOutput, Job, Part, PartsOutput, at_least_one, ending_of
from elmo_tasks.jobs import add_arguments as add_job_arguments
from elmo_tasks.shipped import DEFAULT_BILM
from elmo_tasks.text import in_nfc, words_of_text
from elmo_tasks.text.formats import text_sentences, warn_if_untokenised
from elmo_tasks.text.lines import located

if TYPE_CHECKING:
    from elmo_tasks.vectors.elmo import Elmo

__all__ = ["DESCRIPTION", "EmbedOptions", "add_arguments", "embed", "embed_file"]

logger = logging.getLogger(__name__)

DESCRIPTION = "Write the ELMo vectors of a text, one sentence per line, into a file."
# Raised when the code writes other bytes for the same text and biLM.
_FORMAT = 1
_ENDINGS = (".h5", ".hdf5", ".parquet", "/")
_Sentence = str | list[str]
_Vectors = Iterable[tuple[list[str], list[np.ndarray]]]


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
    input_format: str | None = None


_ARGUMENTS: dict[str, dict[str, Any]] = {
    "bilm": {"help": "name, or folder with options.json and weights.hdf5"},
    "layers": {"type": _layers, "help": "mix, all, top, or a number"},
    "weights": {"type": float, "nargs": "+", "help": "one per layer of the mix, before the softmax; default: all 0"},
    "gamma": {"type": float, "help": "factor of the vectors"},
    "pool": {"choices": ["mean", "max", "first-last"], "help": "write one vector per sentence instead of per word"},
    "tokenize": {"help": "letters (of lines or FASTA), or spaCy's rules for en, de, ...; default: whitespace"},
    "dtype": {"choices": ["float32", "float16"], "help": "type of the numbers in the output"},
    "precision": {"choices": ["float32", "bf16", "int8", "auto"], "help": "of the biLM's products; default: float32"},
    "batch_tokens": {"type": at_least_one, "help": "words per batch; default: 4096, on a GPU 16384"},
    "input_format": {"choices": ["text"], "help": "text: lines that only look like a different format"},
    "part_lines": {
        "type": at_least_one,
        "help": "lines per part; an interrupted job loses the parts in progress; default: 500",
    },
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
    Writes the vectors of a text to a file and returns the number of lines. After an interruption, the same
    call computes only the missing parts.

    # Parameters

    text, output
        The text is UTF-8, plain, `.gz` or `.xz`: see `text_sentences`. The output is HDF5 (`.h5`, `.hdf5`),
        Parquet (`.parquet`), or, if its name ends with a slash, a folder of Parquet files, one per part.
    force
        Whether to replace an existing output or the parts of an interrupted job.
    workers, ray
        The number of processes, each with its own biLM, and the address of a Ray cluster that runs them.
        `None`: only this process, or all cores of the cluster. All machines need the same folders.
    elmo
        The biLM, if it is already loaded. Workers load their own.
    """
    text, options = Path(text), options or EmbedOptions()
    ending = ending_of(output, text, _ENDINGS, force=force)
    output = Path(output)
    elmo = elmo or _loaded(options.bilm, options.device, options.precision)
    # The same for all workers, also on other machines.
    options = replace(options, precision=elmo.bilm.precision)
    settings = _settings(text, options, elmo)
    n_lines, n_words = _count(text, options, elmo)
    _check_space(output, ending, options, elmo, n_lines if options.pool else n_words)
    suffix = ".parquet" if ending == "/" else ".npz"
    job = Job(output, settings, n_items=n_lines, part_items=options.part_lines, suffix=suffix, force=force)
    # Other processes load their own biLM.
    write = partial(_write_part, options, settings, elmo=elmo if workers is None and ray is None else None)
    result = PartsOutput() if ending == "/" else FileOutput(partial(_join, settings))
    job.run(_sentences(text, options), write, result, workers=workers, ray=ray, device=options.device)
    return n_lines


def _check_space(output: Path, ending: str, options: EmbedOptions, elmo: "Elmo", n_vectors: int) -> None:
    """HDF5 ends the process if the disk is full."""
    n_numbers = n_vectors * elmo.dim * (elmo.n_layers if options.layers == "all" else 1)
    # For the parts and the output, which are the same in a folder.
    needed = (1 if ending == "/" else 2) * n_numbers * np.dtype(options.dtype).itemsize
    output = output.resolve()
    needed -= sum(file.stat().st_size for file in output.parent.glob(f"{output.name}.parts/part-*"))
    free = shutil.disk_usage(output.parent).free
    if free < needed:
        raise OSError(f"expected {needed:,} free bytes for {output} and its parts, got {free:,}")


@lru_cache(maxsize=1)
def _loaded(bilm: str, device: str | None, precision: Any) -> "Elmo":
    from elmo_tasks.vectors.elmo import Elmo

    return Elmo.from_pretrained(bilm, device=device, precision=precision)


def _count(text: Path, options: EmbedOptions, elmo: "Elmo") -> tuple[int, int]:
    """The number of lines and of words. It reads the whole text, so an error in any line is raised here."""
    from elmo_tasks.bilm.characters import MAX_BYTES

    n_lines = n_words = n_cut = 0
    for sentence in _sentences(text, options):
        words = words_of_text(sentence, "whitespace") if isinstance(sentence, str) else sentence
        n_lines += 1
        n_words += len(words)
        n_cut += sum(len(word.encode()) > MAX_BYTES for word in words)
    # ELMoForManyLangs counts characters, not bytes.
    if n_cut and elmo.bilm.options.dictionaries is None:
        logger.warning("%d words longer than 48 bytes are cut", n_cut)
    return n_lines, n_words


def _sentences(text: Path, options: EmbedOptions) -> Iterator[_Sentence]:
    is_text = options.input_format == "text"
    sentences = text_sentences(text, letters=options.tokenize == "letters", is_text=is_text, command="embed")
    each = (in_nfc(part) if isinstance(part, str) else list(map(in_nfc, part)) for _, part in sentences)
    return warn_if_untokenised(each, text) if options.tokenize == "whitespace" else each


def _settings(text: Path, options: EmbedOptions, elmo: "Elmo") -> dict[str, Any]:
    """Everything that the vectors depend on, as JSON."""
    from elmo_tasks.bilm.weights import weights_digest

    weights = weights_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()
    values = {**asdict(options), "device": None, "bilm": weights, "text": file_digest(text), "format": _FORMAT}
    settings: dict[str, Any] = json.loads(json.dumps({**values, "kernel": elmo.bilm.kernel}))
    return settings


def _write_part(options: EmbedOptions, settings: dict[str, Any], part: Part[_Sentence], elmo: "Elmo | None") -> int:
    path, first, lines = part
    elmo = elmo or _loaded(options.bilm, options.device, options.precision)
    sentences = [words_of_text(line, options.tokenize) if isinstance(line, str) else line for line in lines]
    arguments: Any = {key: getattr(options, key) for key in ("layers", "weights", "gamma", "pool", "batch_tokens")}
    vectors = elmo.embed(sentences, progress=False, **arguments)
    if path.suffix == ".parquet":
        with atomic_file(path) as temporary:
            _write_parquet(temporary, [([" ".join(words) for words in sentences], vectors)], settings, first)
        return len(lines)
    # One array for all lines: writing many takes longer than computing them.
    flat = np.concatenate([array.ravel() for array in vectors]).astype(options.dtype, copy=False)
    words = np.frombuffer("\n".join(map(" ".join, sentences)).encode(), np.uint8)
    with atomic_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, lines=words, shapes=np.array([array.shape for array in vectors]), vectors=flat)
    return len(lines)


def _join(settings: dict[str, Any], files: list[Path], output: Path) -> None:
    write = _write_parquet if output.suffix == ".parquet" else _write_hdf5
    write(output, _read_parts(files), settings)


def _read_parts(files: list[Path]) -> _Vectors:
    for file in files:
        with located(file, "a part of the job: remove it, and run the same command again"), np.load(file) as part:
            shapes, flat, lines = part["shapes"], part["vectors"], part["lines"].tobytes().decode().split("\n")
        ends = np.cumsum(shapes.prod(-1))[:-1]
        yield lines, [array.reshape(shape) for array, shape in zip(np.split(flat, ends), shapes, strict=True)]


def _write_hdf5(path: Path, parts: _Vectors, settings: dict[str, Any]) -> None:
    """
    The layout of AllenNLP's former `elmo` command: one array per line, named "0", "1", ..., and `sentence_to_index`, a
    JSON object with the number of each sentence (the last one of equal sentences). `sentences` are in addition.
    """
    import h5py

    sentences: list[str] = []
    # `track_order` keeps the order of the lines, instead of "0", "1", "10".
    with h5py.File(path, "w", libver=("v110", "v110"), track_order=True) as file:
        file.attrs["elmo_tasks"] = json.dumps(settings)
        for lines, vectors in parts:
            for number, array in enumerate(vectors, start=len(sentences)):
                # HDF5 has no larger chunks, and no checksum without chunks.
                checked = {"fletcher32": True, "chunks": array.shape} if 0 < array.nbytes < 2**32 else {}
                file.create_dataset(str(number), data=array, **checked)
            sentences += lines
        file.create_dataset("sentences", data=sentences, dtype=h5py.string_dtype())
        index = json.dumps({sentence: str(number) for number, sentence in enumerate(sentences)})
        file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())


def _write_parquet(path: Path, parts: _Vectors, settings: dict[str, Any], first: int = 0) -> None:
    """Rows of `index`, `sentence`, `shape` and `vectors` (flat), with one row group per part."""
    with needs("parquet"):
        import pyarrow
        from pyarrow.parquet import ParquetWriter

    vectors_type = pyarrow.large_list(pyarrow.from_numpy_dtype(np.dtype(settings["dtype"])))
    types = {"index": pyarrow.int64(), "sentence": pyarrow.string(), "shape": pyarrow.list_(pyarrow.int32())}
    schema = pyarrow.schema({**types, "vectors": vectors_type}, metadata={"elmo_tasks": json.dumps(settings)})
    with ParquetWriter(path, schema, use_dictionary=False, write_page_checksum=True) as writer:
        for lines, vectors in parts:
            offsets = np.cumsum([0, *(array.size for array in vectors)])
            flat = pyarrow.LargeListArray.from_arrays(
                offsets, np.concatenate([array.ravel() for array in vectors]).astype(settings["dtype"], copy=False)
            )
            indices = np.arange(first, first := first + len(lines))
            columns = [indices, lines, [list(array.shape) for array in vectors], flat]
            writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=len(lines))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("text", type=Path, help="file with one sentence per line, UTF-8; plain, .gz or .xz")
    add("output", help="to write: .h5 or .hdf5, .parquet, or a name that ends with / for a folder of Parquet files")
    for name, of_argument in _ARGUMENTS.items():
        add(f"--{name.replace('_', '-')}", default=getattr(EmbedOptions, name), **of_argument)
    add_job_arguments(parser)


def embed(arguments: argparse.Namespace) -> None:
    options = {option.name: getattr(arguments, option.name) for option in fields(EmbedOptions)}
    options["weights"] = arguments.weights and tuple(arguments.weights)
    others = {name: getattr(arguments, name) for name in ("force", "workers", "ray")}
    n_lines = embed_file(arguments.text, arguments.output, EmbedOptions(**options), **others)
    output = Path(arguments.output)
    n_bytes = sum(file.stat().st_size for file in (output.iterdir() if output.is_dir() else [output]))
    print(f"wrote {arguments.output}: {n_lines:,} lines, {n_bytes:,} bytes")
