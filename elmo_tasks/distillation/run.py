"""A distillation: the teacher labels the text, the student is trained, and its archive is its own."""

import copy
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import allennlp.commands.train
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model
from allennlp.models.archival import CONFIG_NAME, archive_model

from elmo_tasks.compat.torch_fixes.saved_files import load_without_code
from elmo_tasks.distillation.teacher import Teachers
from elmo_tasks.files.checksums import file_with_checksum
from elmo_tasks.transformer.self_contained import write_content

__all__ = ["Distillation", "distill"]

_TEACHER, _TRAINING, _BEST = "teacher", "training", "best.th"
_PREFIX = "student."


@dataclass(frozen=True)
class Distillation:
    """
    How a student learns.

    # Parameters

    loss, temperature, labelled_weight
        See `DistilledModel`.
    most_texts
        How many unlabelled texts are used at most; `None` is all.
    batch_size
        How many texts the teacher labels at once.
    device
        Where it does.
    """

    loss: Literal["cross_entropy", "mse"] = "cross_entropy"
    temperature: float = 1.0
    labelled_weight: float = 0.5
    most_texts: int | None = None
    batch_size: int = 64
    device: str = "cpu"


def distill(
    teachers: Sequence[Path], unlabelled: Path, student: Mapping[str, Any], folder: Path, how: Distillation
) -> Path:
    """
    Trains a student. What is there of an interrupted call is kept: the parts that the teacher has finished, and the
    checkpoints of the training.

    # Parameters

    teachers
        Archives; the probabilities of several are averaged.
    unlabelled
        Text: see `read_texts`.
    student
        The evaluated config of a training, which is not changed.
    folder
        For the result: `model.tar.gz`, `metrics.json` and what an AllenNLP run has; below it `teacher/` with what the
        teacher says, and `training/`, the run of the training.
    how
        How it learns.

    # Returns

    `Path`
        The archive, which is that of the student alone, as if it had been trained without a teacher.

    # Raises

    `ValueError`
        If there is no text, or teachers or student are of another kind.
    `ConfigurationError`
        If the student has other labels than the teacher, or the folder has another distillation.
    """
    if not how.temperature > 0:
        raise ValueError(f"the temperature must be above 0, but is {how.temperature}")
    archive = folder / "model.tar.gz"
    if archive.exists():
        raise ConfigurationError(f"{folder} must be a new folder or that of an interrupted run, but has {archive.name}")
    of_teachers = Teachers(teachers, torch.device(how.device))
    kind = Model.by_name(student["model"].get("type"))
    if getattr(kind, "default_predictor", None) != of_teachers.kind.default_predictor:
        raise ValueError(
            f"the student must be a model of its teacher's task, but the teacher is a {of_teachers.kind.__name__} and "
            f"the student a {getattr(kind, '__name__', kind)}"
        )
    n_texts, digest = of_teachers.label(
        unlabelled,
        folder / _TEACHER,
        temperature=how.temperature,
        most=how.most_texts,
        batch_size=how.batch_size,
    )
    print(f"{n_texts:,} texts are labelled by {len(teachers)} teacher{'s' * (len(teachers) > 1)}")
    labels = of_teachers.labels
    # Their memory is the training's.
    del of_teachers
    training = folder / _TRAINING
    config = _config_of_training(student, labels, folder / _TEACHER, digest, how)
    allennlp.commands.train.train_model(Params(config), str(training), recover=_has_begun(training))
    return _write_archive(student, folder)


def _config_of_training(
    student: Mapping[str, Any], labels: list[str], targets: Path, digest: str, how: Distillation
) -> dict[str, Any]:
    config = copy.deepcopy(dict(student))
    loader = config["data_loader"]
    config.setdefault("validation_data_loader", loader)
    config["data_loader"] = {
        "type": "elmo_distilled",
        "targets": str(targets),
        "digest": digest,
        "values": "logits" if how.loss == "mse" else "probabilities",
        "loader": copy.deepcopy(loader),
    }
    config["model"] = {
        "type": "elmo_distilled",
        "student": config["model"],
        "labels": labels,
        "loss": how.loss,
        "temperature": how.temperature,
        "labelled_weight": how.labelled_weight,
    }
    return config


def _has_begun(training: Path) -> bool:
    return (training / CONFIG_NAME).exists()


def _write_archive(student: Mapping[str, Any], folder: Path) -> Path:
    training = folder / _TRAINING
    config = copy.deepcopy(dict(student))
    write_content(config)
    Params(config).to_file(str(folder / CONFIG_NAME))
    shutil.copytree(training / "vocabulary", folder / "vocabulary", dirs_exist_ok=True)
    for name in ("metrics.json", "meta.json"):
        if (training / name).exists():
            shutil.copy(training / name, folder / name)
    weights = load_without_code(training / _BEST, training / _BEST)
    with file_with_checksum(folder / _BEST) as temporary:
        torch.save({name.removeprefix(_PREFIX): value for name, value in weights.items()}, temporary)
    archive = Path(archive_model(str(folder), weights=_BEST))
    # That of the student with its teacher's loss, which nothing needs.
    (training / archive.name).unlink(missing_ok=True)
    return archive
