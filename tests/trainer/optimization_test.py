import copy
import io
from typing import Any

import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.moving_average import ExponentialMovingAverage, MovingAverage
from allennlp.training.optimizers import AdamOptimizer, Optimizer

from elmo_tasks.trainer import (
    FusedAdam,
    LinearWithShortWarmup,
    RecoverableMovingAverage,
    StaircaseDecay,
)


class Network(torch.nn.Module):
    def __init__(self, n_words: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(n_words, 10)
        self.layer = torch.nn.Linear(10, 6)
        self.never_used = torch.nn.Linear(2, 2)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.layer(self.words(words)).logsumexp(-1)


def networks(n_words: int) -> list[Network]:
    """Two equal networks."""
    torch.manual_seed(0)
    network = Network(n_words)
    return [network, copy.deepcopy(network)]


def made(name: str, network: Network, **options: Any) -> Optimizer:
    """The optimizer of that name, made from a config."""
    params = Params({"type": name, **copy.deepcopy(options)})
    return Optimizer.from_params(params, model_parameters=list(network.named_parameters()))


GROUPS = [(["^words"], {"lr": 0.01, "weight_decay": 0.1}), (["bias"], {"betas": (0.8, 0.99)})]


def train(network: Network, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        words = torch.randint(200, (8, 5), generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        network(words).square().sum().backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()


def assert_equal(one: Network, other: Network) -> None:
    torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=1e-6, atol=1e-6)


class TestFusedAdam:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"lr": 0.01, "amsgrad": True},
            {"weight_decay": 0.01, "eps": 1e-6, "betas": [0.5, 0.9]},
            {"parameter_groups": GROUPS},
        ],
        ids=str,
    )
    def test_it_takes_the_steps_of_allennlps_adam(self, options):
        by_fused_adam, by_adam = networks(200)
        train(by_fused_adam, made("elmo_fused_adam", by_fused_adam, **options), range(50))
        train(by_adam, made("adam", by_adam, **options), range(50))
        assert_equal(by_fused_adam, by_adam)

    @pytest.mark.parametrize("before", ["adam", "elmo_fused_adam"])
    @pytest.mark.parametrize("after", ["adam", "elmo_fused_adam"])
    def test_a_recovered_run_continues_where_it_stopped(self, before, after):
        stopped, whole = networks(200)
        optimizer = made(before, stopped, amsgrad=True)
        train(stopped, optimizer, range(10))
        file = io.BytesIO()
        torch.save(optimizer.state_dict(), file)
        file.seek(0)
        optimizer = made(after, stopped, amsgrad=True)
        optimizer.load_state_dict(torch.load(file, weights_only=True))
        if after == "elmo_fused_adam":
            assert all(group["fused"] for group in optimizer.param_groups)
        train(stopped, optimizer, range(10, 20))
        train(whole, made("adam", whole, amsgrad=True), range(20))
        assert_equal(stopped, whole)

    def test_gradients_may_have_a_different_memory_layout(self):
        """The kernel by itself would mix up the elements."""

        def trained_by(optimizer_class: type[AdamOptimizer]) -> torch.Tensor:
            weight = torch.nn.Parameter(torch.arange(6.0).view(2, 3))
            optimizer = optimizer_class([("weight", weight)], lr=0.1)
            for _ in range(3):
                weight.grad = torch.arange(-2.0, 4.0).view(3, 2).T
                optimizer.step()
            return weight.detach()

        torch.testing.assert_close(trained_by(FusedAdam), trained_by(AdamOptimizer))


def model() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


def average_steps(layer: torch.nn.Linear, average: MovingAverage, steps: range) -> None:
    for step in steps:
        with torch.no_grad():
            layer.weight.add_(step)
            layer.bias.mul_(1.5)
        average.apply(step)


def averages(layer: torch.nn.Linear, average: MovingAverage) -> list[torch.Tensor]:
    """The weights of the model during validation."""
    average.assign_average_value()
    averaged = [parameter.detach().clone() for parameter in layer.parameters()]
    average.restore()
    return averaged


class TestRecoverableMovingAverage:
    def test_a_recovered_run_averages_like_an_uninterrupted_one(self):
        """With AllenNLP's own average, a recovered run differs."""
        layer = model()
        whole = ExponentialMovingAverage(layer.named_parameters(), decay=0.9)
        average_steps(layer, whole, range(1, 9))
        expected = torch.cat([average.flatten() for average in averages(layer, whole)])
        assert torch.allclose(averages_of_two_runs(RecoverableMovingAverage), expected)
        assert not torch.allclose(averages_of_two_runs(ExponentialMovingAverage), expected)


def averages_of_two_runs(average_class: type[MovingAverage]) -> torch.Tensor:
    """The averages after four steps, and four more in a recovered run, as one vector."""
    layer = model()
    average = average_class(layer.named_parameters(), decay=0.9)
    average_steps(layer, average, range(1, 5))
    file = io.BytesIO()
    torch.save({"model": layer.state_dict(), "average": average.state_dict()}, file)
    file.seek(0)
    state = torch.load(file, weights_only=False)
    recovered_layer = model()
    recovered = average_class(recovered_layer.named_parameters(), decay=0.9)
    recovered_layer.load_state_dict(state["model"])
    recovered.load_state_dict(state["average"])
    average_steps(recovered_layer, recovered, range(5, 9))
    return torch.cat([values.flatten() for values in averages(recovered_layer, recovered)])


def optimizer(*rates: float) -> torch.optim.Optimizer:
    groups = []
    for rate in rates:
        groups.append({"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate})
    return torch.optim.Adam(groups)


def rates(optimizer: torch.optim.Optimizer) -> list[float]:
    return [group["lr"] for group in optimizer.param_groups]


class TestStaircaseDecay:
    @pytest.mark.parametrize("with_total", [True, False])
    def test_the_rate_falls_every_few_batches(self, with_total):
        """TensorFlow's staircase: rate * 0.5 ** (batch // 3)."""
        adam = optimizer(0.1, 0.4)
        scheduler = StaircaseDecay(adam, decay_rate=0.5, batches_per_step=3)
        for batch in range(1, 11):
            scheduler.step_batch(batch if with_total else None)
            if batch % 4 == 0:
                scheduler.step(0.5)
            factor = 0.5 ** (batch // 3)
            assert rates(adam) == pytest.approx([0.1 * factor, 0.4 * factor])

    def test_a_recovered_run_continues_where_it_stopped(self):
        adam = optimizer(0.1)
        scheduler = StaircaseDecay(adam, 0.5, 2)
        for _ in range(3):
            scheduler.step_batch()
        recovered_adam = optimizer(0.1)
        recovered_adam.load_state_dict(adam.state_dict())
        recovered = StaircaseDecay(recovered_adam, 0.5, 2)
        recovered.load_state_dict(scheduler.state_dict())
        for _ in range(3):
            scheduler.step_batch()
            recovered.step_batch()
        assert rates(adam) == pytest.approx([0.1 * 0.5**3])
        assert rates(recovered_adam) == rates(adam)


@pytest.mark.parametrize(("n_steps", "warmup_steps"), [(30, 3), (10_000, 500)])
def test_a_warm_up_is_at_most_a_tenth_of_the_training(n_steps, warmup_steps):
    adam = optimizer(1.0)
    params = Params({"type": "elmo_linear_with_warmup", "warmup_steps": 500})
    scheduler = LearningRateScheduler.from_params(
        params, optimizer=adam, num_epochs=2, num_steps_per_epoch=n_steps // 2
    )
    rates_of_steps = []
    for _ in range(n_steps):
        scheduler.step_batch()
        rates_of_steps += rates(adam)
    up_to_the_peak = np.arange(1, warmup_steps + 1) / warmup_steps
    down_to_zero = np.linspace(1, 0, n_steps - warmup_steps + 1)[1:]
    assert rates_of_steps[:warmup_steps] == pytest.approx(up_to_the_peak)
    assert rates_of_steps[warmup_steps:] == pytest.approx(down_to_zero)


def test_a_warm_up_needs_the_number_of_steps():
    """A loader that does not know its length has none."""
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    with pytest.raises(ConfigurationError, match="num_steps_per_epoch"):
        LinearWithShortWarmup(optimizer, 2, None, 500)
