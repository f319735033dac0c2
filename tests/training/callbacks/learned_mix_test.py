import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TensorBoardCallback, TrainerCallback
from tensorboardX.proto.event_pb2 import Event

from elmo_tasks.modules import LayerMix
from elmo_tasks.training import LearnedMixCallback

LAYERS = [torch.full((1, 1, 1), value) for value in (1.0, 2.0, 4.0)]


class Embedder(torch.nn.Module):
    """An embedder of text fields by its names: the token embedder `elmo` has a mix."""

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


def train(model: Model, folder: Path, *callbacks: TrainerCallback) -> None:
    """Two steps of SGD."""
    loader = SimpleDataLoader([Instance({"x": TensorField(torch.ones(1))})] * 2, batch_size=1, vocab=Vocabulary())
    GradientDescentTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.5),
        loader,
        num_epochs=1,
        serialization_dir=str(folder),
        callbacks=list(callbacks),
        cuda_device=torch.device("cpu"),
    ).train()


def by_hand(n_steps: int) -> list[tuple[float, list[float], float, list[float]]]:
    """Gamma, the weights after the softmax and the gradients of both, after each step, in float64."""
    values = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    gamma, weights, found = torch.tensor(1.0, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), []
    for _ in range(n_steps):
        shares = weights.softmax(0)
        mean = shares @ values
        # Eq. (1) and its derivatives.
        of_gamma, of_weights = mean, gamma * shares * (values - mean)
        gamma, weights = gamma - 0.5 * of_gamma, weights - 0.5 * of_weights
        found.append((gamma.item(), weights.softmax(0).tolist(), of_gamma.item(), of_weights.tolist()))
    return found


def events(folder: Path) -> dict[tuple[str, int], float]:
    """The numbers that TensorBoard shows, by their names and steps, from its files."""
    found = {}
    for path in folder.iterdir():
        content = path.read_bytes()
        while content:
            (size,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + size])
            found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
            content = content[12 + size + 4 :]
    return found


class TestLearnedMixCallback:
    def test_tensorboard_has_weights_gamma_and_gradients_by_step(self, environment, tmp_path):
        """Oracle: the derivatives of Eq. (1) by hand, after each of two steps; the step is AllenNLP's."""
        train(Mixes(text_field_embedder="mix"), tmp_path, TensorBoardCallback(str(tmp_path), summary_interval=1))
        logged = {key: value for key, value in events(tmp_path / "log" / "train").items() if key[0].startswith("elmo")}
        expected = {}
        for step, (gamma, weights, of_gamma, of_weights) in enumerate(by_hand(2), start=2):
            expected |= {("elmo_input/gamma", step): gamma, ("elmo_input/gamma_gradient", step): of_gamma}
            for layer in range(3):
                expected["elmo_input/" + f"layer_{layer}", step] = weights[layer]
                expected["elmo_input/" + f"layer_{layer}_gradient", step] = of_weights[layer]
        assert logged == pytest.approx(expected, abs=1e-5)

    def test_only_every_so_many_steps_are_logged(self, environment, tmp_path):
        """Oracle: the writer's interval: of two steps the second."""
        train(Mixes(output_embedder="mix"), tmp_path, TensorBoardCallback(str(tmp_path), summary_interval=2))
        steps = {step for name, step in events(tmp_path / "log" / "train") if name.startswith("elmo_output/")}
        assert steps == {3}

    def test_the_learnt_mixes_are_one_line_at_the_end(self, environment, tmp_path, capsys):
        """Oracle: the numbers by hand; a single layer has a gamma alone, 1 - 0.5 * 4 - 0.5 * 4."""
        train(Mixes(text_field_embedder="mix", output_embedder="top"), tmp_path)
        gamma, weights, _, _ = by_hand(2)[-1]
        shown = " ".join(f"{weight:.3f}" for weight in weights)
        assert capsys.readouterr().out.splitlines() == [
            f"ELMo has learnt: input: layers {shown}, gamma {gamma:.3f}; output: a single layer, gamma -3.000"
        ]

    def test_without_elmo_nothing_is_printed(self, environment, tmp_path, capsys):
        """Oracle: the output."""
        train(Mixes(), tmp_path, TensorBoardCallback(str(tmp_path), summary_interval=1))
        assert capsys.readouterr().out == ""

    def test_an_embedder_elsewhere_has_its_own_name(self, environment, tmp_path, capsys):
        """Oracle: the name of the module in a model that is not ours."""
        train(Mixes(passage="mix"), tmp_path)
        assert "ELMo has learnt: passage.token_embedder_elmo: layers 0." in capsys.readouterr().out

    @pytest.mark.parametrize("given", [{"is_primary": False, "metrics": {"loss": 1.0}}, {"metrics": None}])
    def test_other_processes_and_interrupted_trainings_print_nothing(self, tmp_path, capsys, given):
        """Oracle: the output."""
        trainer: Any = SimpleNamespace(model=Mixes(text_field_embedder="mix"))
        LearnedMixCallback(str(tmp_path)).on_end(trainer, epoch=0, **given)
        assert capsys.readouterr().out == ""

    def test_it_is_made_from_a_config(self, environment):
        """Oracle: the name in AllenNLP's registry."""
        assert TrainerCallback.by_name("elmo_learned_mix") is LearnedMixCallback
