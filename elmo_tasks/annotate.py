"""
Writes the plain results of trained tasks for a corpus, as JSON lines or Parquet. The corpus is read once for all tasks;
an interrupted job continues with the same command.
"""

import argparse
import gzip
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.json_files import file_digest, json_lines
from elmo_tasks.jobs import Part, job_folder, missing_parts, written
from elmo_tasks.text.formats import lines_in
from elmo_tasks.text.lines import located, numbered_lines
from elmo_tasks.version import __version__

if TYPE_CHECKING:
    from elmo_tasks import TrainedTask

__all__ = ["DESCRIPTION", "add_arguments", "annotate", "annotate_file"]

DESCRIPTION = "Write what trained tasks find in a corpus: names, roles, chains, ... with their places in each text."
_ENDINGS = (".jsonl", ".jsonl.gz", ".parquet")
# The name of a document, and its text for each input of the tasks.
_Document = tuple[str, dict[str, str]]


def annotate_file(
    tasks: Sequence[str | os.PathLike[str]],
    corpus: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    language: str = "en",
    part_texts: int = 200,
    force: bool = False,
    workers: int | None = None,
    ray: str | None = None,
) -> int:
    """
    Writes the results of tasks for each text of a corpus, and returns the number of texts. After an interruption, the
    same call computes only the missing parts.

    # Parameters

    tasks
        Models as in `TrainedTask`, which all have the same inputs.
    corpus
        A file with one text per line; a folder with one text per file; JSON lines or a Parquet file, whose keys or
        columns are the inputs of the tasks, such as `text` or `premise` and `hypothesis`, and optionally `id`. Files
        may be compressed (`.gz`, `.xz`).
    output
        `.jsonl`, `.jsonl.gz` or `.parquet`: for each text, its name (the `id`, the path in the folder, or the number of
        the line) as `document`, and the result of each task.
    part_texts
        The number of texts per part: an interrupted job loses at most the parts in progress.
    language, force, workers, ray
        See `TrainedTask` and `embed_file`.
    """
    corpus, output = Path(corpus), Path(output)
    suffix = next((ending for ending in _ENDINGS if output.name.endswith(ending)), None)
    if suffix is None:
        raise ValueError(f"expected an output that ends with {', '.join(_ENDINGS)}, got {output}")
    check_not_input(output, corpus)
    if output.exists() and not force:
        raise FileExistsError(f"{output} exists: use --force (force=True) to replace it")
    from elmo_tasks import TrainedTask

    loaded = {task.name: task for task in (TrainedTask(model, language=language) for model in tasks)}
    inputs = _inputs_of(loaded)
    n_texts = sum(1 for _ in _documents(corpus, inputs))
    folder = output.with_name(f"{output.name}.parts")
    models = {name: _model_digest(task) for name, task in loaded.items()}
    settings = {"language": language, "part_texts": part_texts, "elmo_tasks": __version__}
    with job_folder(folder, {**settings, "tasks": models, "corpus": _digest(corpus)}, force=force):
        parts = missing_parts(_documents(corpus, inputs), folder, ".jsonl", part_texts)
        done = min(n_texts, part_texts * len(list(folder.glob("part-*"))))
        with tqdm(total=n_texts, initial=done, unit="text", disable=None) as bar:
            for n_written in written(parts, partial(_write_part, loaded), workers=workers, ray=ray):
                bar.update(n_written)
        _join(folder, output, suffix)
    return n_texts


def _inputs_of(tasks: dict[str, "TrainedTask"]) -> tuple[str, ...]:
    """The inputs of all tasks, which must be the same."""
    by_inputs = {task.predictor.inputs: name for name, task in tasks.items()}
    if len(by_inputs) > 1:
        found = "; ".join(f"{', '.join(inputs)} of {name}" for inputs, name in by_inputs.items())
        raise ValueError(f"expected tasks with the same inputs, got {found}: run the command for each")
    return next(iter(by_inputs))


def _model_digest(task: "TrainedTask") -> str:
    from elmo_tasks.bilm.digest import weights_digest

    model = task.predictor._model
    return weights_digest(type(model).__name__, model.state_dict()).hex()


def _documents(corpus: Path, inputs: tuple[str, ...]) -> Iterator[_Document]:
    if corpus.is_dir():
        rows: Iterable[tuple[str, Any]] = (
            (str(path.relative_to(corpus)), "\n".join(line for _, line in numbered_lines(path)))
            for path in sorted(corpus.rglob("*"))
            if path.is_file()
        )
    elif corpus.suffix == ".parquet":
        rows = ((str(row.get("id", number)), row) for number, row in enumerate(_parquet_rows(corpus), start=1))
    elif ".jsonl" in corpus.suffixes:
        rows = ((str(row.get("id", number)), row) for number, row in json_lines(corpus))
    else:
        rows = ((str(number), line) for number, line in lines_in(corpus, "one text per line"))
    for name, row in rows:
        with located(corpus, f"text {name}"):
            texts = {inputs[0]: row} if isinstance(row, str) else {key: row[key] for key in inputs}
            if texts.keys() != set(inputs) or not all(isinstance(text, str) for text in texts.values()):
                raise ValueError(
                    f"expected texts as {' and '.join(inputs)} (a .jsonl or .parquet file), got {texts!r:.80}"
                )
            yield name, texts


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    from pyarrow.parquet import ParquetFile

    for batch in ParquetFile(path).iter_batches():
        yield from batch.to_pylist()


def _digest(corpus: Path) -> str:
    if not corpus.is_dir():
        return file_digest(corpus)
    files = [f"{path.relative_to(corpus)} {file_digest(path)}" for path in sorted(corpus.rglob("*")) if path.is_file()]
    return hashlib.sha256("\n".join(files).encode()).hexdigest()


def _write_part(tasks: dict[str, "TrainedTask"], part: Part[_Document]) -> int:
    inputs = [tuple(texts.values()) for _, texts in part.items]
    of_tasks = [task.stream(inputs) for task in tasks.values()]
    with atomic_file(part.file) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for (name, _), *results in zip(part.items, *of_tasks, strict=True):
            row = {"document": name, **dict(zip(tasks, results, strict=True))}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return len(part.items)


def _join(folder: Path, output: Path, suffix: str) -> None:
    # Written in the folder, so a killed job leaves nothing elsewhere.
    whole = folder / f"whole{suffix}"
    files = sorted(folder.glob("part-*.jsonl"))
    with atomic_file(whole) as temporary:
        if suffix == ".parquet":
            _write_parquet(temporary, files)
        else:
            # Without a time, so the same results are the same bytes.
            with gzip.GzipFile(temporary, "wb", mtime=0) if suffix == ".jsonl.gz" else open(temporary, "wb") as file:
                for path in files:
                    file.write(path.read_bytes())
    os.replace(whole, output)
    shutil.rmtree(folder)


def _write_parquet(path: Path, files: Sequence[Path]) -> None:
    """A row group per part, with nested columns whose types are those of all parts together."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    def rows(file: Path) -> list[Any]:
        return [json.loads(line) for _, line in numbered_lines(file)]

    # A part without any result has columns of no type.
    schemas = [pyarrow.Table.from_pylist(rows(file)).schema for file in files]
    schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    with ParquetWriter(path, schema) as writer:
        for file in files:
            writer.write_table(pyarrow.Table.from_pylist(rows(file), schema=schema))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the job to a parser."""
    add = parser.add_argument
    add("task", nargs="+", help="names of models (ner, srl, coref, ...), archives, or folders of runs")
    add("corpus", help="a text per line, a folder with a text per file, .jsonl or .parquet; plain, .gz or .xz")
    add("output", help=f"to write: {', '.join(_ENDINGS)}")
    add("--language", default="en", help="spaCy's code, for splitting text into words (default: en)")
    add("--part-texts", type=int, default=200, help="texts per part; an interrupted job loses the parts in progress")
    add("--workers", type=int, metavar="N", help="processes, each with its own models; on Ray default: one per core")
    add("--ray", metavar="ADDRESS", help="run the workers on a Ray cluster; all machines need the same folders")
    add("--force", action="store_true", help="replace an existing output or the parts of an interrupted job")


def annotate(arguments: argparse.Namespace) -> None:
    """Runs the job with the arguments of a command line."""
    names = ("language", "part_texts", "workers", "ray", "force")
    options = {name: getattr(arguments, name) for name in names}
    n_texts = annotate_file(arguments.task, arguments.corpus, arguments.output, **options)
    print(f"wrote {arguments.output}: {n_texts:,} texts, {Path(arguments.output).stat().st_size:,} bytes")
