"""The text of a task, one sentence a line, as a biLM is fine-tuned on it."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from allennlp.common import Params
from allennlp.data import DatasetReader
from allennlp.data.fields import TextField

from elmo_tasks.files.atomic_files import atomic_folder
from elmo_tasks.logs import logging_from

__all__ = ["TASK_TEXTS", "TaskText", "write_texts"]


class TaskText(NamedTuple):
    """
    # Parameters

    name
        Of its folder.
    title
        What a table calls it.
    task
        The task whose data it is of.
    fields
        The fields of the reader's instances that are text of it.
    """

    name: str
    title: str
    task: str
    fields: tuple[str, ...]


TASK_TEXTS = {
    text.name: text
    for text in (
        TaskText("snli", "SNLI", "snli", ("premise", "hypothesis")),
        TaskText("squad-passages", "SQuAD passages", "squad", ("passage",)),
        TaskText("squad-questions", "SQuAD questions", "squad", ("question",)),
        TaskText("ner", "NER", "ner", ("tokens",)),
        TaskText("sst", "SST-5", "sst", ("tokens",)),
    )
}
"""Those of Table 7 that tasks of ours have, in its order."""


def write_texts(config: dict[str, Any], fields: tuple[str, ...], folder: Path) -> None:
    """
    Writes `train.txt` and `dev.txt`, both or none: each sentence once, as the reader of the task divides it into words.

    # Parameters

    config
        The task's config.
    fields
        See `TaskText`.
    folder
        The folder that is written; if it is there, nothing is done.

    # Raises

    `ConfigurationError`, `ValueError`, `FileNotFoundError`
        If the task's data cannot be read.
    """
    if folder.exists():
        return
    # Sentences and not their phrases, where the two readers differ.
    params = Params(config.get("validation_dataset_reader", config["dataset_reader"]))
    # AllenNLP logs each parameter of a reader.
    with logging_from(logging.WARNING, "allennlp"):
        reader = DatasetReader.from_params(params)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder, ()) as part:
        for name, key in (("train", "train_data_path"), ("dev", "validation_data_path")):
            lines = dict.fromkeys(_lines(reader, config[key], fields))
            (part / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _lines(reader: DatasetReader, path: str, fields: tuple[str, ...]) -> Iterator[str]:
    for instance in reader.read(path):
        for name in fields:
            field = instance.fields[name]
            assert isinstance(field, TextField)
            # White space separates words, and some tokenizers keep it as one.
            words = [word for token in field.tokens for word in token.text.split()]
            if words:
                yield " ".join(words)
