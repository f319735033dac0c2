"""The job of `python -m elmo_tasks annotate`, in parts: see `elmo_tasks.files.jobs`."""

import json
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.corpora.annotations import Annotated, Annotations
from elmo_tasks.corpora.corpus import Corpus, Document, compute_named
from elmo_tasks.corpora.outputs import OUTPUTS, Output
from elmo_tasks.corpora.standoff import FOLDER_MARK
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.extras import check_installed
from elmo_tasks.files.jobs import FileOutput, FolderOutput, Job, Part, ending_of
from elmo_tasks.files.tables import TableOptions, plain_json
from elmo_tasks.text.normal import readable

if TYPE_CHECKING:
    from elmo_tasks import TrainedTask
    from elmo_tasks.vectors.elmo import Precision

__all__ = ["annotate_file"]

# Raised when the code writes other bytes for the same corpus and models.
_FORMAT = 3


def annotate_file(
    tasks: Sequence[str | os.PathLike[str]],
    corpus: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    language: str = "en",
    text_column: str | Sequence[str] = (),
    id_column: str | None = None,
    keep: str | Sequence[str] = (),
    glob: str = "*",
    input_format: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    part_texts: int = 200,
    device: str | None = None,
    packages: Sequence[str] = (),
    trusted: bool = False,
    precision: "Precision | None" = None,
    threshold: float = 0.0,
    force: bool = False,
    workers: int | None = None,
    ray: str | None = None,
) -> int:
    """
    Writes the results of tasks for the texts of a corpus, or the rest after an interruption, and
    returns their number.

    # Parameters

    tasks
        Models as in `TrainedTask`, which all have the same inputs, and different names.
    corpus
        Lines of text, a table, or a folder of texts or tables. See `text_of_file` for offsets in a
        file.
    output
        See `OUTPUTS`. A text has its name as `document`, the columns that are kept, and the result
        of each task.
    text_column, id_column, keep
        The columns with the inputs of the tasks, with the name of a text, and others to copy
        (`"all"`: all others).
    glob, input_format
        The files of a folder, such as `"*.txt"`; and one of `FORMATS`, regardless of the files'
        names.
    sheet, header_row
        See `TableOptions`.
    part_texts
        The number of texts that are computed and written together.
    language, device, packages, trusted, precision, threshold, force, workers, ray
        See `TrainedTask` and `embed_file`.
    """
    from elmo_tasks import TrainedTask

    ending = ending_of(output, Path(corpus), tuple(OUTPUTS), force=force)
    # The options of `TrainedTask` that change results.
    result_options = {"language": language, "precision": precision, "threshold": threshold}
    options: Any = {**result_options, "device": device, "packages": packages, "trusted": trusted}
    predictors = _predictors_of(tasks, options)
    source = Corpus(
        Path(corpus),
        inputs=_inputs_of(predictors),
        text_columns=text_column,
        id_column=id_column,
        keep=keep,
        glob=glob,
        input_format=input_format,
        table=TableOptions(sheet, header_row),
    )
    n_texts, kept = source.survey()
    _check_output(ending, predictors, kept)
    loaded = TrainedTask.by_name(tasks, **options)
    settings: dict[str, Any] = {**result_options, "part_texts": part_texts, "format": _FORMAT}
    settings |= source.settings()
    settings["tasks"] = {name: _model_digest(task) for name, task in loaded.items()}
    job = Job(
        Path(output),
        settings,
        n_items=n_texts,
        part_items=part_texts,
        suffix=".jsonl",
        force=force,
        unit="texts",
    )
    join = partial(_join, ending, loaded, language, kept)
    kind = FolderOutput(join, FOLDER_MARK) if ending == "/" else FileOutput(join)
    write = partial(_write_part, source.path, loaded)
    job.run(source.documents(), write, kind, workers=workers, ray=ray, device=device)
    return n_texts


def _predictors_of(
    tasks: Sequence[str | os.PathLike[str]], options: dict[str, Any]
) -> dict[str, Any]:
    """
    The predictor of each task, by the name of its model: its class, if the config names it, because
    loading a model takes long.
    """
    from elmo_tasks.predictors.trained_models import name_of, path_of_trained_model
    from elmo_tasks.predictors.trained_task import TrainedTask, predictor_of

    predictors = {}
    for task in tasks:
        path = path_of_trained_model(task)
        predictors[name_of(path)] = predictor_of(path, options["packages"])
    are_distinct = len(predictors) == len(tasks)
    if are_distinct and all(hasattr(value, "result_type") for value in predictors.values()):
        return predictors
    # If a config does not say enough, its model is loaded. Two models with the same name are an
    # error of `by_name`.
    loaded = TrainedTask.by_name(tasks, **options)
    return {name: task.predictor for name, task in loaded.items()}


def _inputs_of(predictors: dict[str, Any]) -> tuple[str, ...]:
    different = {predictor.inputs for predictor in predictors.values()}
    if len(different) > 1:
        described = []
        for name, predictor in predictors.items():
            described.append(f"{', '.join(predictor.inputs)} of {name}")
        got = "; ".join(described)
        raise ValueError(
            f"expected tasks with the same inputs, got {got}: run the command for each"
        )
    (inputs,) = different
    return inputs


def _check_output(ending: str, predictors: dict[str, Any], kept: Collection[str]) -> None:
    """
    Raises an error if the output has no place for some results or columns, if two columns have the
    same name, or if a library is missing.
    """
    output = OUTPUTS[ending]
    if output.module is not None:
        check_installed(*output.module)
    misfits = []
    for name, predictor in predictors.items():
        if not _fits(predictor, output):
            misfits.append(f"the results of {name}")
    if kept and not output.keeps:
        misfits.append("columns to keep")
    n_of_name = Counter(["document", *kept, *predictors])
    for name, n in sorted(n_of_name.items()):
        if n > 1:
            misfits.append(f"{n} columns {name}")
    if misfits:
        got = ", ".join(misfits)
        raise ValueError(
            f"expected what {ending} has a place for, got {got}: .jsonl has all results"
        )


def _fits(predictor: Any, output: Output) -> bool:
    """Whether an output has a place for the results of a predictor."""
    if output.of_one_text and len(predictor.inputs) > 1:
        return False
    return not output.needs or getattr(predictor.result_type, output.needs)


def _model_digest(task: "TrainedTask") -> str:
    from elmo_tasks.bilm.weights import weights_digest

    model = task.predictor._model
    return weights_digest(type(model).__name__, model.state_dict()).hex()


def _write_part(corpus: Path, tasks: dict[str, "TrainedTask"], part: Part[Document]) -> int:
    """
    Computes a part from nothing but its texts, so it has the same bytes whichever process and after
    whichever parts it is computed.
    """
    from elmo_tasks.bilm.layer_cache import forget_shared_layers

    forget_shared_layers()

    def annotate_documents(documents: Sequence[Document]) -> list[Annotated]:
        return list(_annotated(tasks, documents))

    rows = compute_named(annotate_documents, part.items, corpus)
    with atomic_file(part.file) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(readable(json.dumps(row._asdict(), ensure_ascii=False)) + "\n")
    return len(part.items)


def _annotated(
    tasks: dict[str, "TrainedTask"], documents: Sequence[Document]
) -> Iterator[Annotated]:
    """The results of all tasks, text by text, so the tasks share the layers of the biLM."""
    texts = [document.texts for document in documents]
    streams = {name: task.stream(texts) for name, task in tasks.items()}
    for document in documents:
        results = {name: plain_json(next(stream)) for name, stream in streams.items()}
        yield Annotated(document.name, document.texts, document.kept, results)


def _join(
    ending: str,
    tasks: dict[str, "TrainedTask"],
    language: str,
    kept: dict[str, str],
    files: Sequence[Path],
    path: Path,
) -> None:
    OUTPUTS[ending].write(Annotations(files, tasks, language, kept), path)
