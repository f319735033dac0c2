import io

import pytest
import torch
from allennlp.training.moving_average import ExponentialMovingAverage, MovingAverage

from elmo_tasks.training import RecoverableMovingAverage


def model() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


def train(layer: torch.nn.Linear, average: MovingAverage, steps: range) -> None:
    for step in steps:
        with torch.no_grad():
            layer.weight.add_(step)
            layer.bias.mul_(1.5)
        average.apply(step)


def averages(layer: torch.nn.Linear, average: MovingAverage) -> list[torch.Tensor]:
    """The weights of the model during validation."""
    average.assign_average_value()
    found = [parameter.detach().clone() for parameter in layer.parameters()]
    average.restore()
    return found


class TestRecoverableMovingAverage:
    def test_a_recovered_run_averages_as_one_that_was_not_interrupted(self):
        """Oracle: AllenNLP's average of a whole run; with AllenNLP's own a recovered one differs."""
        layer = model()
        whole = ExponentialMovingAverage(layer.named_parameters(), decay=0.9)
        train(layer, whole, range(1, 9))
        for cls, is_right in ((RecoverableMovingAverage, True), (ExponentialMovingAverage, False)):
            first = model()
            average = cls(first.named_parameters(), decay=0.9)
            train(first, average, range(1, 5))
            file = io.BytesIO()
            torch.save({"model": first.state_dict(), "average": average.state_dict()}, file)
            file.seek(0)
            state = torch.load(file, weights_only=False)
            second = model()
            recovered = cls(second.named_parameters(), decay=0.9)
            second.load_state_dict(state["model"])
            recovered.load_state_dict(state["average"])
            train(second, recovered, range(5, 9))
            pairs = zip(averages(layer, whole), averages(second, recovered), strict=True)
            assert all(torch.allclose(*pair) for pair in pairs) is is_right

    def test_other_weights_are_an_error(self):
        """Oracle: the message names the weight that only one has."""
        average = RecoverableMovingAverage(model().named_parameters())
        other = RecoverableMovingAverage(torch.nn.Linear(3, 2, bias=False).named_parameters())
        with pytest.raises(ValueError, match="only one of the two has bias: recover with the same config"):
            average.load_state_dict(other.state_dict())

    def test_it_is_registered(self):
        """Oracle: AllenNLP's registry."""
        assert MovingAverage.by_name("elmo_exponential") is RecoverableMovingAverage
