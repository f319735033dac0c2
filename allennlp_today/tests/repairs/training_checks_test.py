"""What is wrong with a training, known before its first epoch."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer
from tagger_runs import Run

pytestmark = pytest.mark.usefixtures("logging_as_before")


class Noisy(Model):
    """Draws random numbers, and has a metric whose name is the last label that it has seen."""

    def __init__(self) -> None:
        super().__init__(Vocabulary())
        self.weight = torch.nn.Parameter(torch.ones(()))
        self.drawn: list[float] = []
        self._labels: list[str] = []

    def forward(self, label: str) -> dict[str, torch.Tensor]:  # type: ignore[override]
        self.drawn.append(random.random() + np.random.random() + torch.rand(()).item())
        self._labels.append(label)
        return {"loss": self.weight}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        labels = self._labels
        if reset:
            self._labels = []
        metrics = {f"f1-{label}": float(len(labels)) for label in labels}
        # Cannot be divided without data.
        metrics["seen"] = len(labels) / len(labels)
        return metrics


class Batches(list):
    def set_target_device(self, device: torch.device) -> None:
        pass


def train(folder: Path, metric: str | list[str]) -> tuple[Noisy, dict[str, Any]]:
    """Trains on one batch, with two for validation."""
    random.seed(1)
    np.random.seed(2)
    torch.manual_seed(3)
    model = Noisy()
    trainer = GradientDescentTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        Batches([{"label": "A"}]),
        validation_data_loader=Batches([{"label": "B"}, {"label": "C"}]),
        validation_metric=metric,
        num_epochs=1,
        serialization_dir=str(folder),
        cuda_device=torch.device("cpu"),
    )
    return model, trainer.train()


def test_an_unknown_metric_is_an_error_before_the_first_epoch(tmp_path):
    run = Run(tmp_path)
    run.config["trainer"]["validation_metric"] = "+f1"
    expected = r"one of accuracy, accuracy3, loss as validation_metric, got 'f1'"
    with pytest.raises(ConfigurationError, match=expected):
        run.start()
    assert not list(run.folder.glob("metrics_epoch_*.json"))


def test_a_known_metric_draws_no_random_numbers(tmp_path):
    model, metrics = train(tmp_path / "loss", "-loss")
    assert len(model.drawn) == 3 and metrics["validation_seen"] == 1.0


def test_the_metric_of_a_label_is_looked_for_in_the_validation(tmp_path):
    """The numbers that the training draws, and its metrics, do not depend on it."""
    expected, metrics = train(tmp_path / "loss", "-loss")
    model, metrics_of_label = train(tmp_path / "label", ["+f1-C", "-loss"])
    assert model.drawn[-3:] == expected.drawn and len(model.drawn) == 5
    names = [name for name in metrics if "f1" in name or "loss" in name]
    for name in names:
        assert metrics_of_label[name] == metrics[name]
    expected = "one of f1-B, f1-C, loss, seen as validation_metric, got 'f1-A'"
    with pytest.raises(ConfigurationError, match=expected):
        train(tmp_path / "unknown", "+f1-A")


@pytest.mark.parametrize(("part", "n_lines"), [("train", 4), ("validation", 2)])
def test_data_with_fewer_instances_than_a_batch_are_an_error(tmp_path, part, n_lines):
    """With as many, the only batch is whole."""
    key = {"train": "data_loader", "validation": "validation_data_loader"}[part]
    few, enough = Run(tmp_path / "few"), Run(tmp_path / "enough")
    for run, batch_size in ((few, n_lines + 1), (enough, n_lines)):
        run.config["validation_data_loader"] = {"batch_size": 2}
        run.config[key] = {"batch_size": batch_size, "drop_last": True}
    with pytest.raises(ConfigurationError, match=f"a batch of {part} data"):
        few.start()
    assert enough.start()["validation_loss"] > 0


@pytest.mark.slow
def test_a_worker_of_several_may_have_no_batch(tmp_path):
    """AllenNLP's own tests train so."""
    run = Run(tmp_path / "run")
    run.config["dataset_reader"]["max_instances"] = 1
    run.config["distributed"] = {"cuda_devices": [-1, -1]}
    assert run.start()["epoch"] == 0


def warnings_of(run: Run) -> list[str]:
    lines = (run.folder / "out.log").read_text().splitlines()
    return [line.partition("training_checks - ")[2] for line in lines if "training_checks" in line]


@pytest.mark.parametrize(
    ("name", "value", "warning"),
    [
        ("num_epoch", 5, "num_epoch, which is ignored: did you mean num_epochs?"),
        ("num_serialized_models_to_keep", 1, "num_serialized_models_to_keep, which is ignored"),
        ("no_grad", ["^elmo"], "no_grad: ^elmo matches no weight"),
        ("no_grad", ["encoder"], ""),
        ("run_sanity_checks", False, ""),
        ("patience", 3, ""),
    ],
)
def test_an_option_of_the_trainer_without_effect_is_a_warning(tmp_path, name, value, warning):
    run = Run(tmp_path)
    run.config["trainer"][name] = value
    run.start()
    assert [warning in message for message in warnings_of(run)] == [True] * bool(warning)


def test_a_regularizer_without_weights_is_a_warning(tmp_path):
    run = Run(tmp_path)
    penalty = {"type": "l2", "alpha": 0.1}
    regexes = [["weight", penalty], ["scalar_parameters", penalty]]
    run.config["model"]["regularizer"] = {"regexes": regexes}
    run.start()
    (message,) = warnings_of(run)
    assert message == "regularizer: scalar_parameters matches no weight of the model"
