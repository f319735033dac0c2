"""
The outputs of `annotate`: JSON lines, Parquet, CSV, XLSX, spaCy's `DocBin`, and those in `conll`
and `standoff`.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints, is_typeddict

from elmo_tasks.corpora.annotations import Annotations
from elmo_tasks.corpora.conll import write_conll, write_conllu
from elmo_tasks.corpora.corpus import in_column, parquet_type
from elmo_tasks.corpora.standoff import write_brat, write_label_studio
from elmo_tasks.files.tables import write_csv, write_xlsx

__all__ = ["OUTPUTS", "Output"]


class Output(NamedTuple):
    """How an output is written, and what it has a place for."""

    write: Callable[[Annotations, Path], None]
    needs: str = ""
    """What a result type must have: `has_spans` or `has_tags`."""
    of_one_text: bool = True
    """Whether the results belong to a single text, not to a pair."""
    keeps: bool = True
    """Whether columns of the corpus can be kept."""
    module: tuple[str, str] | None = None
    """A module that it needs, and the extra that has it."""


def _write_lines(annotations: Annotations, path: Path, *, compressed: bool = False) -> None:
    with open(path, "wb") as file:
        compression: Any = nullcontext(file)
        if compressed:
            # Without a time, so the same results are the same bytes.
            compression = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
        with compression as output:
            for document in annotations:
                line = json.dumps(document.row, ensure_ascii=False) + "\n"
                output.write(line.encode())


def _write_parquet(annotations: Annotations, path: Path) -> None:
    """
    A row group per part. The types of results are those of the tasks, also where no text has any.
    """
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    columns = {"document": pyarrow.string()}
    converted = dict(annotations.kept)
    for name, column_type in annotations.kept.items():
        columns[name] = parquet_type(column_type)
    for name, task in annotations.tasks.items():
        columns[name] = _arrow_type(task.result_type.result)
        if task.result_type.result is Any:
            # Results of any form are JSON.
            converted[name] = "json"
    schema = pyarrow.schema(columns)
    with ParquetWriter(path, schema) as writer:
        for part in annotations.parts():
            rows = []
            for document in part:
                row = document.row
                for name, column_type in converted.items():
                    row[name] = in_column(row.get(name), column_type)
                rows.append(row)
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))


def _arrow_type(python_type: Any) -> Any:
    """The type in Parquet of a type in Python."""
    import pyarrow

    if is_typeddict(python_type):
        fields = get_type_hints(python_type)
        return pyarrow.struct({name: _arrow_type(hint) for name, hint in fields.items()})
    if get_origin(python_type) is list:
        (item_type,) = get_args(python_type)
        return pyarrow.list_(_arrow_type(item_type))
    if get_origin(python_type) is UnionType:
        # `int | None`: every column may have nulls.
        return _arrow_type(get_args(python_type)[0])
    return {int: pyarrow.int64(), float: pyarrow.float64()}.get(python_type, pyarrow.string())


def _write_table(annotations: Annotations, path: Path, *, write: Callable[..., None]) -> None:
    """
    A row for each name, role, mention or word, else for each text. Results of any form are JSON.
    """
    # An ordered set: two tasks may have the same columns.
    result_columns: dict[str, None] = {}
    for task in annotations.tasks.values():
        result_columns |= dict.fromkeys(task.result_type.columns or ["result"])
    has_several_tasks = len(annotations.tasks) > 1
    own_columns = {"document", *result_columns}
    if has_several_tasks:
        own_columns.add("task")
    header = ["document"]
    for name in annotations.kept:
        header.append(f"corpus.{name}" if name in own_columns else name)
    if has_several_tasks:
        header.append("task")
    header += result_columns

    def rows() -> Iterator[list[Any]]:
        for document in annotations:
            document_cells: list[Any] = [document.name]
            for name, column_type in annotations.kept.items():
                document_cells.append(in_column(document.kept.get(name), column_type))
            for name, result in document.results.items():
                task_cells = [name] if has_several_tasks else []
                for row in _table_rows(annotations, name, result):
                    result_cells = [row.get(column) for column in result_columns]
                    yield document_cells + task_cells + result_cells

    write(path, header, rows())


def _table_rows(annotations: Annotations, name: str, result: Any) -> Iterator[dict[str, Any]]:
    result_type = annotations.tasks[name].result_type
    if result_type.columns:
        yield from result_type.rows(result)
    else:
        yield {"result": json.dumps(result, ensure_ascii=False)}


def _write_docs(annotations: Annotations, path: Path) -> None:
    import spacy
    from spacy.tokens import DocBin

    from elmo_tasks.spacy.documents import keep_result, set_result

    nlp = spacy.blank(annotations.language)
    # A second model of names would only fill the gaps of the first.
    first_of_task: dict[str, str] = {}
    for name, task in annotations.tasks.items():
        if nlp.has_factory(f"elmo_{task.task}"):
            first_of_task.setdefault(task.task, name)
    docs = DocBin(store_user_data=True)
    for document, doc in annotations.docs():
        doc.user_data |= {"document": document.name, **document.kept}
        for name, result in document.results.items():
            if name in first_of_task.values():
                set_result(doc, name, annotations.tasks[name].result_type, result)
            else:
                keep_result(doc, name, result)
        docs.add(doc)
    docs.to_disk(path)


OUTPUTS = {
    ".jsonl": Output(_write_lines, of_one_text=False),
    ".jsonl.gz": Output(partial(_write_lines, compressed=True), of_one_text=False),
    ".parquet": Output(_write_parquet, of_one_text=False, module=("pyarrow", "parquet")),
    ".csv": Output(partial(_write_table, write=write_csv), of_one_text=False),
    ".xlsx": Output(
        partial(_write_table, write=write_xlsx), of_one_text=False, module=("openpyxl", "tables")
    ),
    ".spacy": Output(_write_docs),
    ".conllu": Output(write_conllu, needs="has_tags"),
    ".conll": Output(write_conll, needs="has_tags", keeps=False),
    ".labelstudio.json": Output(write_label_studio, needs="has_spans"),
    "/": Output(write_brat, needs="has_spans"),
}
"""By the ending of the output; `/` is a folder for brat."""
