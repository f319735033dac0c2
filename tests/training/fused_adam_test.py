import io

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.training.optimizers import AdamOptimizer, Optimizer

from elmo_tasks.training import FusedAdam
from tests.training.optimizers import Network, made, networks

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
        """Oracle: AllenNLP's `adam`, weights after 50 steps to 1e-6, with the norm of gradients clipped."""
        ours, theirs = networks(200)
        train(ours, made("elmo_fused_adam", ours, **options), range(50))
        train(theirs, made("adam", theirs, **options), range(50))
        assert_equal(ours, theirs)

    def test_a_step_is_a_change_of_the_weights(self):
        """Oracle: torch's count of changes, by which values that were made of weights are known to be old."""
        network = networks(200)[0]
        before = [parameter._version for parameter in network.parameters()]
        train(network, made("elmo_fused_adam", network), range(1))
        after = [parameter._version for parameter in network.parameters()]
        assert all(new > old for new, old in zip(after, before, strict=True))

    @pytest.mark.parametrize("before", ["adam", "elmo_fused_adam"])
    @pytest.mark.parametrize("after", ["adam", "elmo_fused_adam"])
    def test_a_recovered_run_continues_where_it_stopped(self, before, after):
        """Oracle: AllenNLP's `adam` without a stop; the checkpoint may be of either, and is on disk between."""
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

    def test_a_learning_rate_may_change(self):
        """Oracle: AllenNLP's `adam` with the same rates."""
        ours, theirs = networks(200)
        for network, optimizer in ((ours, made("elmo_fused_adam", ours)), (theirs, made("adam", theirs))):
            for rate in (0.1, 0.01, 0.0):
                optimizer.param_groups[0]["lr"] = rate
                train(network, optimizer, range(5))
        assert_equal(ours, theirs)

    def test_gradients_may_be_in_another_order_in_memory(self):
        """Oracle: AllenNLP's `adam`; the kernel by itself would mix up their numbers."""
        weights = []
        for kind in (FusedAdam, AdamOptimizer):
            weight = torch.nn.Parameter(torch.arange(6.0).view(2, 3))
            optimizer = kind([("weight", weight)], lr=0.1)
            for _ in range(3):
                weight.grad = torch.arange(-2.0, 4.0).view(3, 2).T
                optimizer.step()
            weights.append(weight.detach())
        torch.testing.assert_close(*weights)

    def test_sparse_gradients_are_refused(self):
        """Oracle: the message of torch's Adam."""
        embedding = torch.nn.Embedding(4, 2, sparse=True)
        embedding(torch.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            FusedAdam(list(embedding.named_parameters())).step()

    def test_a_mistyped_option_is_an_error(self):
        """Oracle: AllenNLP's message names it."""
        with pytest.raises(ConfigurationError, match="learning_rate"):
            made("elmo_fused_adam", networks(200)[0], learning_rate=0.1)
