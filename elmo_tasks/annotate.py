"""
Writes the plain results of trained tasks for a corpus, as JSON lines or Parquet. The corpus is read once for
all tasks; an interrupted job continues with the same command.
"""

import argparse
import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.json_files import file_digest, json_lines
from elmo_tasks.jobs import Job, Part, ending_of
from elmo_tasks.jobs import add_arguments as add_job_arguments
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
    Writes the results of tasks for each text of a corpus, and returns the number of texts. After an
    interruption, the same call computes only the missing parts.

    # Parameters

    tasks
        Models as in `TrainedTask`, which all have the same inputs.
    corpus
        A file with one text per line; a folder with one text per file; JSON lines or a Parquet file, whose
        keys or columns are the inputs of the tasks, such as `text` or `premise` and `hypothesis`, and
        optionally `id`. Files may be compressed (`.gz`, `.xz`).
    output
        `.jsonl`, `.jsonl.gz` or `.parquet`: for each text, its name (the `id`, the path in the folder, or the
        number of the line) as `document`, and the result of each task.
    part_texts
        The number of texts per part: an interrupted job loses at most the parts in progress.
    language, force, workers, ray
        See `TrainedTask` and `embed_file`.
    """
    corpus, output = Path(corpus), Path(output)
    ending = ending_of(output, corpus, _ENDINGS, force=force)
    from elmo_tasks import TrainedTask

    loaded = {task.name: task for task in (TrainedTask(model, language=language) for model in tasks)}
    inputs = _inputs_of(loaded)
    n_texts = sum(1 for _ in _documents(corpus, inputs))
    models = {name: _model_digest(task) for name, task in loaded.items()}
    settings = {"language": language, "part_texts": part_texts, "elmo_tasks": __version__}
    settings |= {"tasks": models, "corpus": _digest(corpus)}
    job = Job(output, settings, n_items=n_texts, part_items=part_texts, suffix=".jsonl", force=force)
    join = _write_parquet if ending == ".parquet" else partial(_write_lines, compressed=ending.endswith(".gz"))
    job.run(_documents(corpus, inputs), partial(_write_part, loaded), join, workers=workers, ray=ray)
    return n_texts


def _inputs_of(tasks: dict[str, "TrainedTask"]) -> tuple[str, ...]:
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
            for path in _files_in(corpus)
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


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    from pyarrow.parquet import ParquetFile

    for batch in ParquetFile(path).iter_batches():
        yield from batch.to_pylist()


def _digest(corpus: Path) -> str:
    if not corpus.is_dir():
        return file_digest(corpus)
    lines = [f"{path.relative_to(corpus)} {file_digest(path)}" for path in _files_in(corpus)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _write_part(tasks: dict[str, "TrainedTask"], part: Part[_Document]) -> int:
    inputs = [tuple(texts.values()) for _, texts in part.items]
    of_tasks = [task.stream(inputs) for task in tasks.values()]
    with atomic_file(part.file) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for (name, _), *results in zip(part.items, *of_tasks, strict=True):
            row = {"document": name, **dict(zip(tasks, results, strict=True))}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return len(part.items)


def _write_lines(files: list[Path], path: Path, *, compressed: bool) -> None:
    with open(path, "wb") as output:
        for file in files:
            content = file.read_bytes()
            # Without a time, so the same results are the same bytes.
            output.write(gzip.compress(content, mtime=0) if compressed else content)


def _write_parquet(files: list[Path], path: Path) -> None:
    """A row group per part, with nested columns whose types are those of all parts together."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    def rows(file: Path) -> list[Any]:
        return [row for _, row in json_lines(file)]

    # A part without any result has columns of no type.
    schemas = [pyarrow.Table.from_pylist(rows(file)).schema for file in files]
    schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
    with ParquetWriter(path, schema) as writer:
        for file in files:
            writer.write_table(pyarrow.Table.from_pylist(rows(file), schema=schema))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("task", nargs="+", help="names of models (ner, srl, coref, ...), archives, or folders of runs")
    add("corpus", help="a text per line, a folder with a text per file, .jsonl or .parquet; plain, .gz or .xz")
    add("output", help=f"to write: {', '.join(_ENDINGS)}")
    add("--language", default="en", help="spaCy's code, for splitting text into words (default: en)")
    add("--part-texts", type=int, default=200, help="texts per part; an interrupted job loses the parts in progress")
    add_job_arguments(parser)


def annotate(arguments: argparse.Namespace) -> None:
    names = ("language", "part_texts", "workers", "ray", "force")
    options = {name: getattr(arguments, name) for name in names}
    n_texts = annotate_file(arguments.task, arguments.corpus, arguments.output, **options)
    print(f"wrote {arguments.output}: {n_texts:,} texts, {Path(arguments.output).stat().st_size:,} bytes")
