"""
Writes the vectors of a corpus, with a sentence in each line or row, to a file, as a job
(`elmo_tasks.files.jobs`).
"""

import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from elmo_tasks.corpora.corpus import (
    Corpus,
    Document,
    Text,
    compute_named,
    in_column,
    parquet_type,
)
from elmo_tasks.files.atomic_files import atomic_file, check_space
from elmo_tasks.files.extras import check_installed
from elmo_tasks.files.jobs import FileOutput, Job, Part, PartsOutput, ending_of
from elmo_tasks.files.lines import located
from elmo_tasks.files.shipped import DEFAULT_BILM
from elmo_tasks.files.tables import TableOptions
from elmo_tasks.text import in_nfc, words_of_text
from elmo_tasks.text.formats import warn_if_untokenised

if TYPE_CHECKING:
    from elmo_tasks.vectors.elmo import Elmo

__all__ = ["EmbedOptions", "embed_file"]

logger = logging.getLogger(__name__)

# Raised when the code writes other bytes for the same text and biLM.
_FORMAT = 2
_HDF5 = (".h5", ".hdf5")
_ENDINGS = (*_HDF5, ".parquet", "/")
# What HDF5 writes at most besides arrays and texts, for a file and for each line in it.
_HDF5_BYTES = 20_000
_HDF5_BYTES_PER_LINE = 600
# The types of the columns that are kept, as in `Corpus.survey`.
_Kept = dict[str, str]


class _Line(NamedTuple):
    """The name of a sentence, its words, joined by single spaces, and the columns that are kept."""

    document: str
    sentence: str
    kept: dict[str, Any]


class _Embedded(NamedTuple):
    """The lines of a part of the corpus, and an array of vectors for each."""

    lines: list[_Line]
    vectors: list[np.ndarray]

    def flat(self, dtype: str) -> np.ndarray:
        """The numbers of all vectors, one after the other."""
        flat = np.concatenate([array.ravel() for array in self.vectors])
        return flat.astype(dtype, copy=False)


@dataclass(frozen=True)
class EmbedOptions:
    """
    The vectors to compute for each sentence of a corpus: see `Elmo.from_pretrained` and
    `Elmo.embed_iter`. `tokenize` is the `tokenizer` of `Elmo`, except a function, or `"letters"`,
    and `part_lines` sentences are computed and written together. The last seven describe the
    corpus: see `annotate_file`.
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
    text_column: str = "text"
    id_column: str | None = None
    keep: str | Sequence[str] = ()
    glob: str = "*"
    input_format: str | None = None
    sheet: str | None = None
    header_row: int | None = None


def embed_file(
    corpus: str | os.PathLike[str],
    output: str | os.PathLike[str],
    options: EmbedOptions | None = None,
    *,
    force: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    elmo: "Elmo | None" = None,
) -> int:
    """
    Writes the vectors of a corpus to a file and returns the number of sentences. After an
    interruption, the same call computes only the missing parts.

    # Parameters

    corpus
        Lines of text, sentences of CoNLL-U, a table with a sentence or a list of words in each row,
        or a folder of one of these: see `annotate_file`.
    output
        HDF5 (`.h5`, `.hdf5`), Parquet (`.parquet`), or, if its name ends with a slash, a folder of
        Parquet files, one per part.
    force
        Whether to replace an existing output or the parts of an interrupted job.
    workers, ray
        The number of processes, each with its own biLM, and the address of a Ray cluster that runs
        them. `None`: only this process, or all cores of the cluster. All machines need the same
        folders.
    elmo
        The biLM, if it is already loaded. Workers load their own.
    """
    options = options or EmbedOptions()
    ending = ending_of(output, Path(corpus), _ENDINGS, force=force)
    if ending in (".parquet", "/"):
        check_installed("pyarrow", "parquet")
    source = _corpus(Path(corpus), options)
    n_lines, kept = source.survey()
    elmo = elmo or _loaded(options.bilm, options.device, options.precision)
    # The same for all workers, also on other machines.
    options = replace(options, precision=elmo.bilm.precision)
    settings = _settings(source, options, elmo)
    n_words = _count_words(source, options, elmo)
    output = Path(output)
    n_vectors = n_lines if options.pool else n_words
    _check_space(output, ending, _bytes_of_vectors(options, elmo, n_vectors), n_lines)
    job = Job(
        output,
        settings,
        n_items=n_lines,
        part_items=options.part_lines,
        suffix=".parquet" if ending == "/" else ".npz",
        force=force,
    )
    # Other processes load their own biLM.
    own_elmo = elmo if workers is None and ray is None else None
    write = partial(_write_part, source.path, options, settings, kept, elmo=own_elmo)
    kind = PartsOutput() if ending == "/" else FileOutput(partial(_join, settings, kept))
    job.run(source.documents(), write, kind, workers=workers, ray=ray, device=options.device)
    return n_lines


def _corpus(path: Path, options: EmbedOptions) -> Corpus:
    return Corpus(
        path,
        text_columns=[options.text_column],
        id_column=options.id_column,
        keep=options.keep,
        glob=options.glob,
        input_format=options.input_format,
        table=TableOptions(options.sheet, options.header_row),
        of_sentences=True,
        letters=options.tokenize == "letters",
    )


def _bytes_of_vectors(options: EmbedOptions, elmo: "Elmo", n_vectors: int) -> int:
    n_layers = elmo.n_layers if options.layers == "all" else 1
    return n_vectors * elmo.dim * n_layers * np.dtype(options.dtype).itemsize


def _check_space(output: Path, ending: str, n_bytes: int, n_lines: int) -> None:
    """An error if the disk has no space for the output and the missing parts."""
    largest_file = 0
    if ending in _HDF5:
        n_bytes += _HDF5_BYTES_PER_LINE * n_lines
        largest_file = n_bytes
    # The parts of a folder are also the output.
    needed = n_bytes if ending == "/" else 2 * n_bytes
    check_space(output, needed - _bytes_of_parts(output), largest_file)


def _bytes_of_parts(output: Path) -> int:
    output = output.resolve()
    parts = output.parent.glob(f"{output.name}.parts/part-*")
    return sum(file.stat().st_size for file in parts)


@lru_cache(maxsize=1)
def _loaded(bilm: str, device: str | None, precision: Any) -> "Elmo":
    from elmo_tasks.vectors.elmo import Elmo

    return Elmo.from_pretrained(bilm, device=device, precision=precision)


def _count_words(source: Corpus, options: EmbedOptions, elmo: "Elmo") -> int:
    """
    The number of words, which gives the size of the output. For spaCy's rules, it is too low: texts
    are split at white space here, which is faster. Warns of texts that do not look tokenised, and
    of words that are cut.
    """
    from elmo_tasks.bilm.character_ids import MAX_BYTES

    texts: Iterable[Text] = (document.texts[0] for document in source.documents())
    if options.tokenize == "whitespace":
        texts = warn_if_untokenised(texts, source.path)
    tokenizer = "letters" if options.tokenize == "letters" else "whitespace"
    n_words = 0
    n_cut = 0
    for text in texts:
        words = _words(text, tokenizer)
        n_words += len(words)
        n_cut += sum(len(word.encode()) > MAX_BYTES for word in words)
    # ELMoForManyLangs counts characters, not bytes.
    if n_cut and elmo.bilm.options.dictionaries is None:
        logger.warning("%d words longer than %d bytes are cut", n_cut, MAX_BYTES)
    return n_words


def _words(text: Text, tokenizer: str) -> list[str]:
    if not isinstance(text, str):
        return list(map(in_nfc, text))
    if tokenizer == "letters":
        return [letter for letter in text if not letter.isspace()]
    return words_of_text(text, tokenizer)


def _settings(source: Corpus, options: EmbedOptions, elmo: "Elmo") -> dict[str, Any]:
    """Everything that the vectors depend on, as JSON."""
    from elmo_tasks.bilm.weights import weights_digest

    values = asdict(options)
    values["device"] = None
    values["bilm"] = weights_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()
    values |= source.settings()
    values["format"] = _FORMAT
    values["kernel"] = elmo.bilm.kernel
    settings: dict[str, Any] = json.loads(json.dumps(values))
    return settings


def _write_part(
    corpus: Path,
    options: EmbedOptions,
    settings: dict[str, Any],
    kept: _Kept,
    part: Part[Document],
    elmo: "Elmo | None",
) -> int:
    elmo = elmo or _loaded(options.bilm, options.device, options.precision)

    def embed_documents(documents: Sequence[Document]) -> _Embedded:
        return _embedded(elmo, options, documents)

    embedded = compute_named(embed_documents, part.items, corpus)
    if part.file.suffix == ".parquet":
        with atomic_file(part.file) as temporary:
            _write_parquet(temporary, [embedded], settings, kept, part.first)
        return len(embedded.lines)
    lines = np.frombuffer(json.dumps(embedded.lines).encode(), np.uint8)
    shapes = np.array([array.shape for array in embedded.vectors])
    # One array for all lines: writing many takes longer than computing them.
    vectors = embedded.flat(options.dtype)
    with atomic_file(part.file) as temporary, open(temporary, "wb") as file:
        np.savez(file, lines=lines, shapes=shapes, vectors=vectors)
    return len(embedded.lines)


def _embedded(elmo: "Elmo", options: EmbedOptions, documents: Sequence[Document]) -> _Embedded:
    sentences = [_words(document.texts[0], options.tokenize) for document in documents]
    names = ("layers", "weights", "gamma", "pool", "batch_tokens")
    arguments: Any = {name: getattr(options, name) for name in names}
    vectors = elmo.embed(sentences, progress=False, **arguments)
    lines = []
    for document, words in zip(documents, sentences, strict=True):
        lines.append(_Line(document.name, " ".join(words), document.kept))
    return _Embedded(lines, vectors)


def _join(settings: dict[str, Any], kept: _Kept, files: list[Path], output: Path) -> None:
    if output.suffix == ".parquet":
        _write_parquet(output, _read_parts(files), settings, kept)
    else:
        n_bytes = _most_bytes_of_hdf5(files)
        check_space(output, n_bytes, n_bytes)
        _write_hdf5(output, _read_parts(files), settings, kept)


def _most_bytes_of_hdf5(files: list[Path]) -> int:
    """At least as many as HDF5 needs for some parts. It ends the process if it cannot write."""
    n_bytes = _HDF5_BYTES
    for file in files:
        with _opened_part(file) as part:
            # Sentences are written twice.
            n_bytes += file.stat().st_size + part["lines"].nbytes
            n_bytes += _HDF5_BYTES_PER_LINE * len(part["shapes"])
    return n_bytes


@contextmanager
def _opened_part(file: Path) -> Iterator[Any]:
    hint = "a part of the job: remove it, and run the same command again"
    with located(file, hint), np.load(file) as part:
        yield part


def _read_parts(files: list[Path]) -> Iterator[_Embedded]:
    for file in files:
        with _opened_part(file) as part:
            shapes = part["shapes"]
            flat = part["vectors"]
            rows = json.loads(part["lines"].tobytes())
        ends = np.cumsum(shapes.prod(-1))[:-1]
        pairs = zip(np.split(flat, ends), shapes, strict=True)
        vectors = [array.reshape(shape) for array, shape in pairs]
        lines = [_Line._make(row) for row in rows]
        yield _Embedded(lines, vectors)


def _write_hdf5(
    path: Path, parts: Iterable[_Embedded], settings: dict[str, Any], kept: _Kept
) -> None:
    """
    The layout of AllenNLP's former `elmo` command: one array per line, named "0", "1", ..., and
    `sentence_to_index`, a JSON object with the number of each sentence (the last one of equal
    sentences). What that command did not write are attributes, because programs for its files count
    the members: the `sentences`, the names of all lines as `documents`, and the `kept` columns of
    each line as a JSON object.
    """
    import h5py

    lines: list[_Line] = []
    # `track_order` keeps the order of the lines, instead of "0", "1", "10".
    with h5py.File(path, "w", libver=("v110", "v110"), track_order=True) as file:
        file.attrs["elmo_tasks"] = json.dumps(settings)
        for part in parts:
            for number, array in enumerate(part.vectors, start=len(lines)):
                checksum: dict[str, Any] = {}
                # HDF5 has no larger chunks, and no checksum without chunks.
                if 0 < array.nbytes < 2**32:
                    checksum = {"fletcher32": True, "chunks": array.shape}
                file.create_dataset(str(number), data=array, **checksum)
            lines += part.lines
        texts = {
            "sentences": [line.sentence for line in lines],
            "documents": [line.document for line in lines],
        }
        if kept:
            texts["kept"] = [json.dumps(line.kept) for line in lines]
        for name, values in texts.items():
            file.attrs.create(name, data=values, dtype=h5py.string_dtype())
        numbers = {line.sentence: str(number) for number, line in enumerate(lines)}
        index = json.dumps(numbers)
        file.create_dataset("sentence_to_index", data=[index], dtype=h5py.string_dtype())


def _write_parquet(
    path: Path,
    parts: Iterable[_Embedded],
    settings: dict[str, Any],
    kept: _Kept,
    first_index: int = 0,
) -> None:
    """
    Rows of `index`, `document`, the kept columns, `sentence`, `shape` and flat `vectors`; a row
    group per part.
    """
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    number_type = pyarrow.from_numpy_dtype(np.dtype(settings["dtype"]))
    types: dict[str, Any] = {"index": pyarrow.int64(), "document": pyarrow.string()}
    for name, column_type in kept.items():
        types[name] = parquet_type(column_type)
    types |= {
        "sentence": pyarrow.string(),
        "shape": pyarrow.list_(pyarrow.int32()),
        "vectors": pyarrow.large_list(number_type),
    }
    schema = pyarrow.schema(types, metadata={"elmo_tasks": json.dumps(settings)})
    with ParquetWriter(path, schema, use_dictionary=False, write_page_checksum=True) as writer:
        for part in parts:
            end_index = first_index + len(part.lines)
            columns: list[Any] = [np.arange(first_index, end_index)]
            columns.append([line.document for line in part.lines])
            for name, column_type in kept.items():
                columns.append([in_column(line.kept[name], column_type) for line in part.lines])
            columns.append([line.sentence for line in part.lines])
            columns.append([list(array.shape) for array in part.vectors])
            sizes = [array.size for array in part.vectors]
            offsets = np.cumsum([0, *sizes])
            numbers = part.flat(settings["dtype"])
            columns.append(pyarrow.LargeListArray.from_arrays(offsets, numbers))
            table = pyarrow.table(columns, schema=schema)
            writer.write_table(table, row_group_size=len(part.lines))
            first_index = end_index
