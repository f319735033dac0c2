import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback

from elmo_tasks.training import FrozenOnceCheckpointer, PerplexityBeforeCallback


class Guess(Model):
    """Its perplexity is its only weight; it knows seven of eight words."""

    def __init__(self) -> None:
        super().__init__(Vocabulary())
        self.weight = torch.nn.Parameter(torch.tensor(100.0))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:  # type: ignore[override]
        return {"loss": self.weight * x.mean()}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        return {"perplexity": float(self.weight.detach()), "unknown_share": 0.125}


class Fail(TrainerCallback):
    def on_epoch(self, trainer: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt


def train(folder: Path, n_epochs: int, *callbacks: TrainerCallback) -> Model:
    """Trains: each epoch takes 1 from the weight."""
    instances = [Instance({"x": TensorField(torch.ones(1))})]
    loaders = [SimpleDataLoader(instances, batch_size=1, vocab=Vocabulary()) for _ in range(2)]
    model = Guess()
    GradientDescentTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=1.0),
        loaders[0],
        validation_data_loader=loaders[1],
        validation_metric="-perplexity",
        num_epochs=n_epochs,
        serialization_dir=str(folder),
        checkpointer=FrozenOnceCheckpointer(str(folder)),
        callbacks=[PerplexityBeforeCallback(str(folder)), *callbacks],
        cuda_device=torch.device("cpu"),
    ).train()
    return model


class TestPerplexityBeforeCallback:
    def test_it_prints_the_perplexity_before_and_after(self, tmp_path, capsys):
        """Oracle: by hand: the weight before the first step and after two."""
        train(tmp_path, 2)
        assert "): 100.00 before, 98.00 after; 12.5% of the words are unknown" in capsys.readouterr().out
        assert json.loads((tmp_path / "metrics_before.json").read_text())["perplexity"] == 100.0

    def test_a_resumed_run_keeps_the_perplexity_before_its_first_step(self, tmp_path, capsys):
        """Oracle: the first run's file, and its line."""
        train(tmp_path, 1)
        # Another model may have no share of unknown words.
        before = json.dumps({"perplexity": 100.0})
        (tmp_path / "metrics_before.json").write_text(before)
        capsys.readouterr()
        train(tmp_path, 3)
        assert "): 100.00 before, 97.00 after\n" in capsys.readouterr().out
        assert (tmp_path / "metrics_before.json").read_text() == before

    def test_an_interrupted_run_prints_nothing(self, tmp_path, capsys):
        """Oracle: the output."""
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, 1, Fail(str(tmp_path)))
        assert "before" not in capsys.readouterr().out

    def test_of_several_processes_one_writes_and_prints(self, tmp_path, capsys):
        """Oracle: the output, and the folder."""
        instances = [Instance({"x": TensorField(torch.ones(1))})]
        loader = SimpleDataLoader(instances, batch_size=1, vocab=Vocabulary())
        trainer: Any = SimpleNamespace(model=Guess(), _validation_data_loader=loader, cuda_device=torch.device("cpu"))
        callback = PerplexityBeforeCallback(str(tmp_path))
        callback.on_start(trainer, is_primary=False)
        callback.on_end(trainer, metrics={"best_validation_perplexity": 1.0}, epoch=0, is_primary=False)
        assert list(tmp_path.iterdir()) == []
        assert capsys.readouterr().out == ""

    def test_without_validation_data_it_is_an_error(self, tmp_path):
        """Oracle: the message and its remedy."""
        trainer: Any = SimpleNamespace(_validation_data_loader=None)
        with pytest.raises(ConfigurationError, match=r"validation data.*validation_data_path"):
            PerplexityBeforeCallback(str(tmp_path)).on_start(trainer)

    def test_it_is_made_from_a_config(self, environment):
        """Oracle: the name in AllenNLP's registry."""
        assert TrainerCallback.by_name("elmo_perplexity_before") is PerplexityBeforeCallback
