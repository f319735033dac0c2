"""A distillation: the teacher labels the text, the student is trained, and its archive is its own."""

import copy
import math
import re
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import allennlp.commands.train
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader
from allennlp.data.fields import LabelField, SequenceLabelField
from allennlp.models import Model
from allennlp.models.archival import CONFIG_NAME, archive_model
from filelock import FileLock, Timeout

from elmo_tasks.distillation.soft_labels import check_labels
from elmo_tasks.distillation.teacher import Teachers, is_of_pairs
from elmo_tasks.distillation.texts import read_texts
from elmo_tasks.environment import check_data
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import file_with_checksum, sha256_of
from elmo_tasks.files.sealed_json import json_sha256, read_sealed, write_sealed
from elmo_tasks.files.torch_zip import torch_stream

__all__ = ["Distillation", "distill"]

_TEACHER, _TRAINING, _VOCABULARY, _BEST = "teacher", "training", "vocabulary", "best.th"
_RECORD, _LOCK = "distillation.json", "lock"
_CHECKPOINTS = "model_state_*.th"
_ARCHIVE = "model.tar.gz"
_METRICS = "metrics.json"
# What the teacher says depends on these entries of the record.
_OF_TEACHER = ("teachers", "text", "temperature")
_PREFIX = "student."
# Entries of a vocabulary that say which word vectors it has; its labels are those of the data.
_OF_VECTORS = {"pretrained_files", "min_pretrained_embeddings", "only_include_pretrained_words"}
# Of a regular expression for names of parameters, the beginning of a name.
_ANCHOR = re.compile(r"(^|\||\((?:\?:)?)\^")


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

    # Raises

    `ValueError`
        If a value is out of its range.
    """

    loss: Literal["cross_entropy", "mse"] = "cross_entropy"
    temperature: float = 1.0
    labelled_weight: float = 0.5
    most_texts: int | None = None
    batch_size: int = 64
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"the temperature must be above 0, and finite, but is {self.temperature}")
        if not 0 <= self.labelled_weight <= 1:
            raise ValueError(
                f"the weight of the labelled texts (--labelled-weight) must be from 0 to 1, but is "
                f"{self.labelled_weight}"
            )


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
        If there is no text, a teacher is no archive, or the kinds of teachers and student differ, or the labels of
        their data.
    `ConfigurationError`
        If the student is no config of a training, its data is not there, or its vocabulary has other labels than the
        teacher; or the folder has another distillation, or another run, and is then as it was.
    `FileNotFoundError`
        If there is no file of text, or of a teacher.
    `BlockingIOError`
        If another process works in the folder.
    """
    _check_student(student)
    _check_folder(folder)
    _check_text(unlabelled)
    _check_archives(teachers)
    kind = Model.by_name(student["model"].get("type"))
    task = getattr(kind, "default_predictor", None)
    # All of it: a line of another form would be found only when the teacher has labelled those before it.
    for _ in read_texts(unlabelled, pairs=is_of_pairs(task), most=how.most_texts):
        pass
    of_teachers = Teachers(teachers, torch.device(how.device))
    if task != of_teachers.kind.default_predictor:
        raise ValueError(
            f"the student must be a model of its teacher's task, but the teacher is a {of_teachers.kind.__name__} and "
            f"the student a {getattr(kind, '__name__', kind)}"
        )
    if not _has_begun(folder):
        _check_labels(student, of_teachers.labels)
    with _locked(folder):
        # Another process may have ended since.
        _check_folder(folder)
        _write_record(folder, teachers, unlabelled, student, how)
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
        config = _config_of_training(student, labels, folder / _TEACHER, n_texts, digest, how)
        # Written when a training has ended: it would lose its metrics if it were resumed. One that was interrupted may
        # have an archive.
        if not (training / _METRICS).exists():
            if _has_begun(folder):
                _follow_targets(training / CONFIG_NAME, config)
            allennlp.commands.train.train_model(Params(config), str(training), recover=_has_begun(folder))
        return _write_archive(student, folder)


def _check_student(student: Mapping[str, Any]) -> None:
    for key in ("model", "data_loader", "dataset_reader"):
        if not isinstance(student.get(key), Mapping):
            raise ConfigurationError(f"the student must be a config of a training, with '{key}', but has none")
    for key, value in {
        "model.type": student["model"].get("type"),
        "train_data_path": student.get("train_data_path"),
    }.items():
        if not isinstance(value, str):
            raise ConfigurationError(
                f"the student must be a config of a training, with a text as '{key}', but has {value!r}"
            )
    # Of which the teacher's labels and the targets are.
    if (namespace := student["model"].get("label_namespace", "labels")) != "labels":
        raise ConfigurationError(
            f"the labels of a student must be in the namespace 'labels', but its label_namespace is {namespace!r}: "
            "omit it"
        )
    if student["data_loader"].get("max_instances_in_memory") is not None:
        raise ConfigurationError(
            "the data of a student must be in memory, so that their number is known, but its data_loader has "
            "'max_instances_in_memory': remove it, and use fewer texts (--max-texts)"
        )


def _check_text(unlabelled: Path) -> None:
    if not unlabelled.is_file():
        raise FileNotFoundError(f"the unlabelled text must be a file, but {unlabelled} is none")
    if _is_archive(unlabelled):
        raise ValueError(
            f"the last file must be the unlabelled text, but {unlabelled} is an archive: name a text after the teachers"
        )


def _check_archives(teachers: Sequence[Path]) -> None:
    for path in teachers:
        if not path.exists():
            raise FileNotFoundError(f"a teacher must be an archive, a model.tar.gz, but {path} is not there")
        if path.is_dir():
            raise ValueError(f"a teacher must be an archive, but {path} is a folder: give its model.tar.gz")
        if not _is_archive(path):
            raise ValueError(
                f"a teacher must be an archive, but {path} is none: give the model.tar.gz that a training has written"
            )


def _is_archive(path: Path) -> bool:
    try:
        return tarfile.is_tarfile(path)
    except EOFError:
        # A compressed file that is cut off, which is named where it is read.
        return False


def _check_labels(student: Mapping[str, Any], of_teacher: list[str]) -> None:
    """Before the teacher labels a long text. Other vocabularies than that of the data are looked at in the training."""
    params = Params(copy.deepcopy(dict(student)))
    # As at the start of the training: test data that is not there is left out.
    check_data(params)
    config = params.as_dict(quiet=True)
    if set(config.get("vocabulary") or {}) - _OF_VECTORS:
        return
    reader = config["dataset_reader"]
    readers = dict.fromkeys(("validation", "test"), config.get("validation_dataset_reader") or reader)
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for part, of_part in {"train": reader, **readers}.items():
        path = config.get(f"{part}_data_path")
        # AllenNLP makes the vocabulary of all of them, or of those that are named.
        if path and part in (config.get("datasets_for_vocab_creation") or ("train", "validation", "test")):
            for instance in DatasetReader.from_params(Params(copy.deepcopy(of_part))).read(path):
                for field in instance.fields.values():
                    if isinstance(field, LabelField | SequenceLabelField):
                        field.count_vocab_items(counts)
    check_labels(of_teacher, counts["labels"])


def _check_folder(folder: Path) -> None:
    if folder.is_file():
        raise ConfigurationError(f"the result (-s) must be a folder, but {folder} is a file: name another folder")
    if (folder / _ARCHIVE).exists():
        raise ConfigurationError(f"{folder} must be a new folder or that of an interrupted run, but has {_ARCHIVE}")
    # Without a record, which an error may have asked to remove, a distillation has parts of its teacher.
    if (folder / _RECORD).exists() or any((folder / _TEACHER).glob("part-*")):
        return
    of_others = [name for name in (CONFIG_NAME, _BEST, _TRAINING, _VOCABULARY) if (folder / name).exists()]
    of_others += [path.name for path in folder.glob(_CHECKPOINTS)]
    if of_others:
        raise ConfigurationError(
            f"{folder} must be a new folder or that of an interrupted distillation, but has the {of_others[0]} of "
            "another run: name another folder"
        )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / _LOCK, timeout=0):
            yield
    except Timeout:
        raise BlockingIOError(
            f"{folder} is that of another process, which works there: wait for it, or name another folder"
        ) from None


def _write_record(
    folder: Path, teachers: Sequence[Path], unlabelled: Path, student: Mapping[str, Any], how: Distillation
) -> None:
    """
    Says what the folder is for. Of an earlier call, what the teacher has said stays, and so does a training that has a
    checkpoint: they must be of the same distillation.
    """
    record = {
        "teachers": [sha256_of(path) for path in teachers],
        "text": sha256_of(unlabelled),
        "temperature": how.temperature,
        "most_texts": how.most_texts,
        "loss": how.loss,
        "labelled_weight": how.labelled_weight,
        "student": json_sha256(student),
    }
    file = folder / _RECORD
    if file.exists():
        try:
            before = read_sealed(file)
        except ValueError as error:
            raise ConfigurationError(
                f"{error}. If the folder is that of these files and options, remove this file, and the same command "
                "resumes; or name another folder"
            ) from None
        kept = record if _has_begun(folder) else _OF_TEACHER if any((folder / _TEACHER).glob("part-*")) else ()
        if changed := [key for key in kept if before.get(key) != record[key]]:
            shown = "; ".join(f"{key} was {before.get(key)!r} and is {record[key]!r}" for key in changed)
            raise ConfigurationError(
                f"{folder} must be a new folder or that of the same distillation, but has another: {shown}. Give the "
                "same files and options as then, or name another folder"
            )
    if not _has_begun(folder):
        # A training that ended before its first checkpoint, as for a wrong value in the config.
        shutil.rmtree(folder / _TRAINING, ignore_errors=True)
    write_sealed(file, record)


def _config_of_training(
    student: Mapping[str, Any], labels: list[str], targets: Path, n_texts: int, digest: str, how: Distillation
) -> dict[str, Any]:
    config = copy.deepcopy(dict(student))
    # Without one the config stays so, and AllenNLP says that there must be one.
    trainer = config.get("trainer", {})
    # After a kill the weights of the best epoch are there.
    trainer.setdefault("checkpointer", {"type": "elmo_frozen_once"})
    # The parameters of the student have a prefix in the training.
    if trainer.get("no_grad"):
        trainer["no_grad"] = [_of_student(pattern) for pattern in trainer["no_grad"]]
    optimizer = trainer.get("optimizer")
    # It may be a name alone.
    if isinstance(optimizer, dict) and (groups := optimizer.get("parameter_groups")):
        optimizer["parameter_groups"] = [
            [[_of_student(pattern) for pattern in patterns], options] for patterns, options in groups
        ]
    loader = config["data_loader"]
    config.setdefault("validation_data_loader", loader)
    config["data_loader"] = {
        "type": "elmo_distilled",
        "targets": str(targets.resolve()),
        "n_texts": n_texts,
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


def _of_student(pattern: str) -> str:
    """Of `^encoder`, `^student[.]encoder`."""
    return _ANCHOR.sub(r"\g<1>^student[.]", pattern)


def _has_begun(folder: Path) -> bool:
    return any((folder / _TRAINING).glob(_CHECKPOINTS))


def _follow_targets(file: Path, config: dict[str, Any]) -> None:
    """Of a folder that was moved, the config of its training says the former place, and AllenNLP compares the two."""
    before = Params.from_file(str(file)).as_dict(quiet=True)
    loader = before.get("data_loader")
    if isinstance(loader, dict) and loader.get("targets") != config["data_loader"]["targets"]:
        loader["targets"] = config["data_loader"]["targets"]
        with atomic_file(file) as temporary:
            Params(before).to_file(str(temporary))


def _write_archive(student: Mapping[str, Any], folder: Path) -> Path:
    training = folder / _TRAINING
    config = copy.deepcopy(dict(student))
    Params(config).to_file(str(folder / CONFIG_NAME))
    shutil.rmtree(folder / _VOCABULARY, ignore_errors=True)
    shutil.copytree(training / _VOCABULARY, folder / _VOCABULARY)
    for name in (_METRICS, "meta.json"):
        if (training / name).exists():
            shutil.copy(training / name, folder / name)
    weights = torch.load(training / _BEST, map_location="cpu", weights_only=True)
    with file_with_checksum(folder / _BEST) as temporary, torch_stream(temporary) as stream:
        torch.save({name.removeprefix(_PREFIX): value for name, value in weights.items()}, stream)
    archive = Path(archive_model(str(folder), weights=_BEST))
    # That of the student with its teacher's loss, which nothing needs.
    (training / archive.name).unlink(missing_ok=True)
    return archive
