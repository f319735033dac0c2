"""The losses of three seeded training steps of each task: `python -m elmo_tasks.replication.train.three_steps`."""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import islice
from unittest.mock import patch

import numpy
import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.plugins import import_plugins
from allennlp.common.util import prepare_environment

from elmo_tasks.files.sealed_json import write_sealed
from elmo_tasks.printable import one_line
from elmo_tasks.replication.plan.computation import COMPUTATION, FORMAT, known_losses
from elmo_tasks.replication.plan.config import SEEDS, TEMPLATES, Call, evaluated_configs
from elmo_tasks.replication.plan.task import POS, TASKS, Task
from elmo_tasks.replication.plan.variant import Variant
from elmo_tasks.shipped import FIXTURES

__all__ = ["TOLERANCE", "changed", "kinds_of", "losses", "main"]

TOLERANCE = 1e-3
"""
Relative, of a loss: sums of other lengths of vectors, on another processor or with another number of threads, differ by
less than a hundredth of it, and what is written has four digits.
"""

_STEPS = 3
_INSTANCES_OF_STEP = 2
_SEED = 13370
_VARIABLES = {
    "ELMO_TASKS_DATA": str(FIXTURES),
    "ELMO_TASKS_GLOVE": "glove.open.100d.txt.gz",
    # The same code as for a larger one, in a fraction of the time.
    "ELMO_TASKS_BILM": str(FIXTURES / "bilm_tiny"),
    "ELMO_TASKS_LAYER": "1",
}
# Of templates that take it: a tenth of their size.
_HIDDEN = {"snli": 30, "sst": 30, "srl": 30}
# What a training has that three steps do not need.
_OMITTED = ("validation_data_path", "test_data_path", "evaluate_on_test")


def kinds_of(task: Task) -> dict[str, Variant]:
    """The variants whose losses stand for all others: see `kind_of`."""
    if task == POS:
        return {"elmo": Variant.of_layer(1)}
    return {"baseline": Variant.baseline(), "elmo": Variant.elmo(task)}


@cache
def _configs() -> dict[tuple[str, str], str]:
    """Of each task and kind, as JSON: all at once, since Jsonnet reads its library each time."""
    variants = {(task.name, kind): variant for task in TASKS.values() for kind, variant in kinds_of(task).items()}
    calls = [
        Call(TEMPLATES / f"{task}.libsonnet", {**variant.arguments, **_size_of(task)})
        for (task, _), variant in variants.items()
    ]
    return {key: json.dumps(config) for key, config in zip(variants, evaluated_configs(calls, _VARIABLES), strict=True)}


def _size_of(task: str) -> dict[str, int]:
    return {"hidden": _HIDDEN[task]} if task in _HIDDEN else {}


def losses(task: Task, kind: str) -> list[float]:
    """
    Trains the template of a task, smaller where it can be, for three small batches of the data that ships.

    # Parameters

    task
        The task.
    kind
        One of those of `kinds_of`.

    # Returns

    `List[float]`
        The loss before each of the steps, with the regularization, to four digits.
    """
    config = json.loads(_configs()[task.name, kind])
    config = {key: value for key, value in config.items() if key not in _OMITTED}
    config["dataset_reader"]["max_instances"] = _STEPS * _INSTANCES_OF_STEP
    if "batch_sampler" in config["data_loader"]:
        config["data_loader"]["batch_sampler"]["batch_size"] = _INSTANCES_OF_STEP
    seeds = dict.fromkeys(SEEDS, _SEED)
    prepare_environment(Params(seeds))
    with tempfile.TemporaryDirectory() as folder, _dropout_of_numpy():
        training = TrainModel.from_params(Params(config), serialization_dir=folder, local_rank=0)
        trainer = training.trainer
        training.model.train()
        found = []
        for batch in islice(trainer.data_loader, _STEPS):
            trainer.optimizer.zero_grad()
            loss = trainer.batch_outputs(batch, for_training=True)["loss"]
            loss.backward()
            trainer.rescale_gradients()
            trainer.clip_gradient()
            trainer.optimizer.step()
            found.append(float(f"{loss.item():.4g}"))
    return found


@contextmanager
def _dropout_of_numpy() -> Iterator[None]:
    """Dropout with the random numbers of NumPy: those of torch are other ones on another kind of processor."""
    generator = numpy.random.default_rng(_SEED)

    def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        if not training or p == 0:
            return input
        kept = torch.from_numpy(generator.random(tuple(input.shape)) >= p).to(input)
        return input * kept / (1 - p)

    with patch("torch.nn.functional.dropout", dropout):
        yield


def changed(task: Task, kind: str, found: list[float]) -> str | None:
    """
    # Returns

    `Optional[str]`
        What to do if the losses are not those that were written; `None` if they are.
    """
    known = known_losses().get(task.name, {}).get(kind, [])
    if len(known) == len(found) and all(
        math.isclose(*pair, rel_tol=TOLERANCE) for pair in zip(known, found, strict=True)
    ):
        return None
    return (
        f"{task.name} ({kind}) must have the losses {known} in its first steps, but has {found}: the code now computes "
        "something else. If that is meant, run `make computation`, which writes the new losses; the runs of this task "
        "then count as outdated, and are trained again"
    )


def main(arguments: list[str] | None = None) -> str | None:
    """
    Computes the losses of all tasks, and writes those that have changed.

    # Returns

    `Optional[str]`
        The error; `None` after success.
    """
    parser = argparse.ArgumentParser(description="Write what the first training steps of each task compute.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a task computes something else")
    given = parser.parse_args(arguments)
    # Registers the classes of the configs.
    import_plugins()

    try:
        known = known_losses() if COMPUTATION.exists() else {}
        written: dict[str, dict[str, list[float]]] = {}
        problems = []
        for task in TASKS.values():
            for kind in kinds_of(task):
                found = losses(task, kind)
                problem = changed(task, kind, found) if known else "new"
                if problem is not None:
                    problems.append(problem)
                    print(f"{task.name} ({kind}): {found}")
                # Within the tolerance the digits of another machine must not count as a change.
                written.setdefault(task.name, {})[kind] = found if problem else known[task.name][kind]
        if given.check:
            return "\n".join(problems) or None
        if problems:
            write_sealed(COMPUTATION, {"format": FORMAT, "losses": written})
        print(f"{COMPUTATION}: {len(problems)} of the losses have changed")
    except (ValueError, OSError) as error:
        return one_line(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
