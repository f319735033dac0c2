"""The runs of Table 7: one epoch of the biLM on the text of each task."""

from collections.abc import Sequence
from pathlib import Path

from elmo_tasks.replication.plan.config import SEEDS, TEMPLATES, evaluated_config
from elmo_tasks.replication.plan.data_digests import RECORD, digest, inputs_of, with_roots_named
from elmo_tasks.replication.plan.experiment import Experiment
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task_text import TaskText, write_texts
from elmo_tasks.replication.plan.variant import Variant, bilm_argument

__all__ = ["FINE_TUNED", "check_softmax", "fine_tunings"]

FINE_TUNED = "bilm"
"""The folder of these runs, among those of the tasks."""

_SEED = 1


def fine_tunings(experiment: Experiment, texts: Sequence[TaskText]) -> list[Run]:
    """
    The text of a task is written to the folder `texts` of all runs, once for the same data.

    # Parameters

    experiment
        Data and biLM.
    texts
        Those to fine-tune on.

    # Returns

    `List[Run]`
        One for each, called `bilm/<name of the text>/1`.

    # Raises

    `ValueError`
        If the biLM has no softmax to tell a perplexity by, or is a URL; if the data cannot be read.
    `FileNotFoundError`
        If data or biLM is not there.
    """
    bilm = Path(experiment.variables["ELMO_TASKS_BILM"])
    check_softmax(str(bilm))
    return [_fine_tuning(experiment, bilm, text) for text in texts]


def check_softmax(bilm: str) -> None:
    """
    # Raises

    `ValueError`
        If a biLM has no softmax, or is a URL.
    """
    if "://" in bilm:
        raise ValueError(f"Table 7 needs the folder of a biLM, but --bilm is the URL {bilm}: download it")
    if not Path(bilm, "vocab.txt").is_file():
        raise ValueError(
            f"Table 7 needs a biLM with a softmax and its vocab.txt, but {bilm} has none: learn one with "
            "training_configs/bilm_softmax.jsonnet, and name the exported folder (--bilm, or 'bilm' of a plan)"
        )


def _fine_tuning(experiment: Experiment, bilm: Path, text: TaskText) -> Run:
    task = experiment.run(text.task, Variant.baseline(), _SEED)
    record = experiment.results / RECORD
    of_data = "-".join(digest(Path(task.config[key]), record) for key in ("train_data_path", "validation_data_path"))
    texts = experiment.results / "texts"
    folder = texts / f"{text.name}-{of_data}"
    write_texts(task.config, text.fields, folder)
    arguments = {
        "start": bilm_argument(bilm),
        "word_list": str(bilm / "vocab.txt"),
        "text": {"train": str(folder / "train.txt"), "dev": str(folder / "dev.txt")},
    }
    config = evaluated_config(TEMPLATES / "bilm.libsonnet", arguments, {}, experiment.variables)
    config |= dict.fromkeys(SEEDS, _SEED)
    roots = {str(texts): "texts", str(bilm): "biLM"}
    identity = {
        "text": text.name,
        "seed": _SEED,
        "config": with_roots_named(config, roots),
        "inputs": inputs_of(config, roots, record),
    }
    about = {**task.about, "bilm": bilm.resolve().name, "text": text.name}
    return Run(FINE_TUNED, text.name, _SEED, None, experiment.results, config, identity, about)
