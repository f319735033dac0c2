import json
from pathlib import Path
from typing import Any

import torch
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer

from elmo_tasks.bilm import LayerMix
from elmo_tasks.trainer import FrozenOnceCheckpointer, PerplexityBeforeCallback

LAYERS = [torch.full((1, 1, 1), value) for value in (1.0, 2.0, 4.0)]


class Embedder(torch.nn.Module):
    """Imitates the names of a text field embedder, with a mix in its token embedder `elmo`."""

    def __init__(self, layers: Any) -> None:
        super().__init__()
        self.token_embedder_elmo = torch.nn.Module()
        self.token_embedder_elmo.mix = LayerMix(3, layers=layers)


class Mixes(Model):
    """Its loss is the sum of its mixes of `LAYERS`."""

    def __init__(self, **places: Any) -> None:
        super().__init__(Vocabulary())
        for name, layers in places.items():
            setattr(self, name, Embedder(layers))
        self.other = torch.nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:  # type: ignore[override]
        mask = torch.ones(1, 1, dtype=torch.bool)
        mixes = [module for module in self.modules() if isinstance(module, LayerMix)]
        return {"loss": self.other + sum(mix(LAYERS, mask).sum() for mix in mixes)}


def loader(n_steps: int) -> SimpleDataLoader:
    instance = Instance({"x": TensorField(torch.ones(1))})
    return SimpleDataLoader([instance] * n_steps, batch_size=1, vocab=Vocabulary())


def train(model: Model, folder: Path, n_steps: int, rate: float, **options: Any) -> None:
    """Trains by SGD, by default for an epoch."""
    trainer = GradientDescentTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=rate),
        loader(n_steps),
        serialization_dir=str(folder),
        cuda_device=torch.device("cpu"),
        **{"num_epochs": 1, **options},
    )
    trainer.train()


class TestLearnedMixCallback:
    def test_the_learnt_mixes_are_one_line_at_the_end(self, environment, tmp_path, capsys):
        """
        A single layer has only a gamma: 1 - 0.5 * 4 - 0.5 * 4. An embedder elsewhere has its own
        name.
        """
        model = Mixes(text_field_embedder="mix", output_embedder="top", passage=1)
        train(model, tmp_path, n_steps=2, rate=0.5)
        mix = model.text_field_embedder.token_embedder_elmo.mix
        shares = mix.layer_weights.softmax(0).tolist()
        layers = " ".join(f"{share:.3f}" for share in shares)
        assert capsys.readouterr().out.splitlines() == [
            f"ELMo has learned: input: layers {layers}, gamma {mix.gamma.item():.3f}; "
            "output: a single layer, gamma -3.000; "
            "passage.token_embedder_elmo: a single layer, gamma -1.000"
        ]


class Guess(Model):
    """Its perplexity is its only weight; one of eight words is unknown."""

    def __init__(self) -> None:
        super().__init__(Vocabulary())
        self.weight = torch.nn.Parameter(torch.tensor(100.0))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:  # type: ignore[override]
        return {"loss": self.weight * x.mean()}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        return {"perplexity": float(self.weight.detach()), "unknown_share": 0.125}


def train_guess(folder: Path, n_epochs: int) -> None:
    """Trains a `Guess`; each epoch subtracts 1 from its weight."""
    train(
        Guess(),
        folder,
        n_steps=1,
        rate=1.0,
        num_epochs=n_epochs,
        validation_data_loader=loader(1),
        validation_metric="-perplexity",
        callbacks=[PerplexityBeforeCallback(str(folder))],
        checkpointer=FrozenOnceCheckpointer(str(folder)),
    )


class TestPerplexityBeforeCallback:
    def test_it_prints_the_perplexity_before_and_after(self, tmp_path, capsys):
        train_guess(tmp_path, 2)
        expected = "): 100.00 before, 98.00 after; 12.5% of the words are unknown"
        assert expected in capsys.readouterr().out
        assert json.loads((tmp_path / "metrics_before.json").read_text())["perplexity"] == 100.0

    def test_a_resumed_run_keeps_the_perplexity_before_its_first_step(self, tmp_path, capsys):
        train_guess(tmp_path, 1)
        before = (tmp_path / "metrics_before.json").read_text()
        capsys.readouterr()
        train_guess(tmp_path, 3)
        assert "): 100.00 before, 97.00 after;" in capsys.readouterr().out
        assert (tmp_path / "metrics_before.json").read_text() == before
