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
from elmo_tasks.corpora.outputs import OUTPUTS
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
_FORMAT = 2


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
    of_results = {"language": language, "precision": precision, "threshold": threshold}
    options: Any = {**of_results, "device": device, "packages": packages, "trusted": trusted}
    predictors = _predictors_of(tasks, options)
    source = Corpus(
        Path(corpus),
        _inputs_of(predictors),
        text_column,
        id_column,
        keep,
        glob,
        input_format,
        TableOptions(sheet, header_row),
    )
    n_texts, kept = source.survey()
    _expect_place_for(ending, predictors, kept)
    loaded = TrainedTask.by_name(tasks, **options)
    settings = {**of_results, "part_texts": part_texts, "format": _FORMAT, **source.settings()}
    settings["tasks"] = {name: _model_digest(task) for name, task in loaded.items()}
    join = partial(_join, ending, loaded, language, kept)
    job = Job(Path(output), settings, n_texts, part_texts, ".jsonl", force, "texts")
    result = FolderOutput(join, FOLDER_MARK) if ending == "/" else FileOutput(join)
    write = partial(_write_part, source.path, loaded)
    job.run(source.documents(), write, result, workers=workers, ray=ray, device=device)
    return n_texts


def _predictors_of(
    tasks: Sequence[str | os.PathLike[str]], options: dict[str, Any]
) -> dict[str, Any]:
    """
    What describes the tasks, by the names of the models; before these are loaded, which takes long.
    """
    from elmo_tasks.predictors.trained_models import name_of, trained_model
    from elmo_tasks.predictors.trained_task import TrainedTask, predictor_of

    predictors = {}
    for path in map(trained_model, tasks):
        predictors[name_of(path)] = predictor_of(path, options["packages"])
    if len(predictors) == len(tasks) and all(
        hasattr(predictor, "result_type") for predictor in predictors.values()
    ):
        return predictors
    # Two models of one name, or a config that does not tell enough, are an error here.
    return {name: task.predictor for name, task in TrainedTask.by_name(tasks, **options).items()}


def _inputs_of(predictors: dict[str, Any]) -> tuple[str, ...]:
    inputs, *others = {predictor.inputs: name for name, predictor in predictors.items()}
    if others:
        found = "; ".join(
            f"{', '.join(predictor.inputs)} of {name}" for name, predictor in predictors.items()
        )
        raise ValueError(
            f"expected tasks with the same inputs, got {found}: run the command for each"
        )
    return inputs


def _expect_place_for(ending: str, predictors: dict[str, Any], kept: Collection[str]) -> None:
    """
    An error if the output cannot have some results or columns, or two of one name, or needs a
    missing library.
    """
    output = OUTPUTS[ending]
    if output.module is not None:
        check_installed(*output.module)
    of_kinds = {
        name: (len(predictor.inputs) > 1 and output.of_one_text)
        or (output.needs and not getattr(predictor.result_type, output.needs))
        for name, predictor in predictors.items()
    }
    wrong = [f"the results of {name}" for name, is_wrong in of_kinds.items() if is_wrong]
    wrong += ["columns to keep"] if kept and not output.keeps else []
    n_of_name = Counter(["document", *kept, *predictors])
    wrong += [f"{n} columns {name}" for name, n in sorted(n_of_name.items()) if n > 1]
    if wrong:
        raise ValueError(
            f"expected what {ending} has a place for, got {', '.join(wrong)}: .jsonl has all results"
        )


def _model_digest(task: "TrainedTask") -> str:
    from elmo_tasks.bilm.weights import weights_digest

    model = task.predictor._model
    return weights_digest(type(model).__name__, model.state_dict()).hex()


def _write_part(corpus: Path, tasks: dict[str, "TrainedTask"], part: Part[Document]) -> int:
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
