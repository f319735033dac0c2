"""Helpers for the tests of the published configs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from allennlp.common import Params

from tests.paths import TINY_BILM, TRAINING_CONFIGS

# Plans are lists of runs, and not configs of one.
PLANS = {"open.jsonnet"}
PUBLISHED = sorted({str(path.relative_to(TRAINING_CONFIGS)) for path in TRAINING_CONFIGS.rglob("*.jsonnet")} - PLANS)
PLACES = [["input"], ["output"], ["input", "output"]]


# Configs of parts of speech: on a single layer of the biLM, as in the paper, and taggers that are not in it.
PARTS_OF_SPEECH = ["pos", "pos_elmo", "pos_layer"]


def data_of(task: str, folder: Path, fixtures: Path, n_train_lines: int | None = None) -> Path:
    """A root of data with that of one task, of which the training file may be cut, and the word vectors."""
    (folder / task).mkdir(parents=True)
    (folder / "glove").symlink_to(fixtures / "glove")
    for file in (fixtures / task).iterdir():
        (folder / task / file.name).symlink_to(file)
        if n_train_lines is not None and file.stem == "train":
            (folder / task / file.name).unlink()
            lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
            (folder / task / file.name).write_text("".join(lines[:n_train_lines]), encoding="utf-8")
    return folder


def evaluated(path: Path) -> dict[str, Any]:
    return Params.from_file(path).as_dict(quiet=True)


def at(config: dict[str, Any], key: str) -> Any:
    """The value of a key as `differences` names it."""
    value: Any = config
    for name in key.split("."):
        value = value[int(name) if isinstance(value, list) else name]
    return value


def differences(one: Any, other: Any, key: str = "") -> set[str]:
    """The keys at which two configs differ, each as deep as both have it."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one, other = (dict(enumerate(values)) for values in (one, other))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return set() if one == other and type(one) is type(other) else {key}
    found = set()
    for name in {**one, **other}:
        path = f"{key}.{name}".removeprefix(".")
        found |= differences(one[name], other[name], path) if name in one and name in other else {path}
    return found


class Trained(NamedTuple):
    """A run whose data, word vectors and biLM are deleted."""

    run: Path
    # Copies of the files of the task.
    data: Path
    command: Callable[..., None]

    def metrics(self) -> dict[str, Any]:
        return json.loads((self.run / "metrics.json").read_text())

    def predictions(self, source: Path, *options: str) -> list[dict[str, Any]]:
        """The predictions that `allennlp predict` writes for a file."""
        output = self.run / "predictions.jsonl"
        self.command("predict", self.run / "model.tar.gz", source, "--output-file", output, "--silent", *options)
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def train_and_clear(
    command: Callable[..., None], environment: pytest.MonkeyPatch, folder: Path, data: Path, name: str, **overrides: Any
) -> Trained:
    """
    Trains a published config with AllenNLP's command, as it is but for one epoch and `overrides`, on a root of data
    with a tiny biLM, and deletes what the archive must not need.
    """
    task = name.removesuffix(".jsonnet").removesuffix("_elmo").removesuffix("_layer")
    root, bilm, run, kept = (folder / part for part in ("data", "bilm", "run", "kept"))
    shutil.copytree(data, root)
    shutil.copytree(TINY_BILM, bilm)
    shutil.copytree(data / task, kept)
    environment.setenv("ELMO_TASKS_DATA", str(root))
    environment.setenv("ELMO_TASKS_BILM", str(bilm))
    command("train", TRAINING_CONFIGS / name, "-s", run, "-o", json.dumps({"trainer.num_epochs": 1, **overrides}))
    # The checkpointer, which omits the biLM; also what else is frozen, as word vectors and the constraints of a CRF.
    assert any(run.glob("model_state_*.th.sha256"))
    embedders = json.loads((run / "config.json").read_text())["model"]["text_field_embedder"]["token_embedders"]
    assert (run / "frozen_weights.th").is_file() or not ("elmo" in embedders or not embedders["tokens"]["trainable"])
    for path in (root, bilm):
        shutil.rmtree(path)
    environment.delenv("ELMO_TASKS_DATA")
    environment.delenv("ELMO_TASKS_BILM")
    return Trained(run, kept, command)
