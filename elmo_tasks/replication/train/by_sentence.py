"""What a trained model gets right in each sentence of its test set."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from allennlp.common.plugins import import_plugins
from allennlp.models import Model
from allennlp.models.archival import load_archive

from elmo_tasks.logs import logging_from
from elmo_tasks.progress import progress_bar
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.training.metrics import SpanF1, SrlF1

__all__ = ["TASKS_BY_SENTENCE", "scores_by_sentence"]

TASKS_BY_SENTENCE = ("squad", "snli", "srl", "ner", "sst")
"""Tasks whose score is made of their sentences; that of coreference is made of documents."""


def scores_by_sentence(task: str, archive: Path) -> list[Sequence[float]]:
    """
    Evaluates the model of an archive on each sentence (proposition, pair, question) of the set that Table 1 is about.

    # Parameters

    task
        One of `TASKS_BY_SENTENCE`.
    archive
        Its `model.tar.gz`; its config names the data.

    # Returns

    `List[Sequence[float]]`
        In the order of the data, for each its score, from 0 to 1; or, where F1 is that of spans, the number of right,
        predicted and gold spans.

    # Raises

    `ConfigurationError`, `FileNotFoundError`
        If the archive is damaged, or the data is not there.
    """
    # Registers the classes of the config.
    import_plugins()
    # AllenNLP logs a hundred lines on the parameters of a model, which would hide what a command says of its runs.
    with logging_from(logging.WARNING, "allennlp"):
        loaded = load_archive(archive, cuda_device=0 if torch.cuda.is_available() else -1)
    # A model is loaded as it is trained, with dropout.
    model, reader = loaded.model.eval(), loaded.validation_dataset_reader
    path = loaded.config["validation_data_path" if TASKS[task].split == "dev" else "test_data_path"]
    score = _score(task, model)
    found: list[Sequence[float]] = []
    # Not whole: an instance is large once it is indexed.
    with progress_bar(None, None, f"sentences of {task}") as advance:
        for instance in reader.read(path):
            model.get_metrics(reset=True)
            model.forward_on_instance(instance)
            found.append(score())
            advance(1)
    return found


def _score(task: str, model: Model) -> Callable[[], Sequence[float]]:
    """The score of the sentence that the model has just seen."""
    spans = [metric for metric in vars(model).values() if isinstance(metric, SpanF1 | SrlF1)]
    if spans:
        return spans[0].counts
    return lambda: [model.get_metrics()[TASKS[task].metric]]
