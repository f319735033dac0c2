import io

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.training.optimizers import Optimizer

from elmo_tasks.training import LazyAdadelta
from tests.training.optimizers import Network, made, networks

N_WORDS = 2000


def train(network: Network, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        # Some words are in most batches, most words are in few; every tenth batch has all words.
        n_kinds = 40 if step % 3 else N_WORDS
        words = torch.randint(n_kinds, (8, 5), generator=generator)
        if step % 10 == 9:
            words = torch.arange(N_WORDS)
        optimizer.zero_grad()
        network(words).square().sum().backward()
        torch.nn.utils.clip_grad_value_(network.parameters(), 1.0)
        optimizer.step()


def assert_equal(one: Network, other: Network) -> None:
    torch.testing.assert_close(one.state_dict(), other.state_dict(), rtol=1e-5, atol=1e-6)


class TestLazyAdadelta:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"lr": 0.5, "rho": 0.95},
            {"eps": 1e-4, "weight_decay": 0.01},
            {"parameter_groups": [(["^words"], {"rho": 0.5}), (["bias"], {"lr": 0.1})]},
        ],
        ids=str,
    )
    def test_it_takes_the_steps_of_allennlps_adadelta(self, options):
        """Oracle: AllenNLP's `adadelta`, weights after 50 steps."""
        ours, theirs = networks(N_WORDS)
        train(ours, made("elmo_lazy_adadelta", ours, **options), range(50))
        train(theirs, made("adadelta", theirs, **options), range(50))
        assert_equal(ours, theirs)

    @pytest.mark.parametrize("before", ["adadelta", "elmo_lazy_adadelta"])
    @pytest.mark.parametrize("after", ["adadelta", "elmo_lazy_adadelta"])
    def test_a_recovered_run_continues_where_it_stopped(self, before, after):
        """Oracle: AllenNLP's `adadelta` without a stop; the checkpoint may be of either, and is on disk between."""
        stopped, whole = networks(N_WORDS)
        optimizer = made(before, stopped)
        train(stopped, optimizer, range(15))
        file = io.BytesIO()
        torch.save(optimizer.state_dict(), file)
        file.seek(0)
        optimizer = made(after, stopped)
        optimizer.load_state_dict(torch.load(file, weights_only=True))
        train(stopped, optimizer, range(15, 25))
        train(whole, made("adadelta", whole), range(25))
        assert_equal(stopped, whole)

    def test_training_continues_after_its_state_was_read(self):
        """Oracle: AllenNLP's `adadelta`, whose state is read without a change to it."""
        ours, theirs = networks(N_WORDS)
        optimizer, reference = made("elmo_lazy_adadelta", ours), made("adadelta", theirs)
        for first in range(0, 30, 5):
            train(ours, optimizer, range(first, first + 5))
            train(theirs, reference, range(first, first + 5))
            torch.testing.assert_close(optimizer.state_dict()["state"], reference.state_dict()["state"])
        assert_equal(ours, theirs)

    def test_words_that_a_batch_lacks_are_not_touched(self):
        """Oracle: their averages in memory, which are those of the last step that had them."""
        network, _ = networks(N_WORDS)
        optimizer = LazyAdadelta(list(network.named_parameters()))
        for words in ([1, 2], [2, 3]):
            optimizer.zero_grad()
            network(torch.tensor([words])).sum().backward()
            averages = optimizer.state[network.words.weight].get("square_avg")
            before = None if averages is None else averages[1].clone()
            optimizer.step()
        assert before is not None and before.any()
        assert torch.equal(optimizer.state[network.words.weight]["square_avg"][1], before)

    def test_nan_stays_in_its_row(self):
        """Oracle: NaN is not equal to itself; the other rows are those of a step without it."""
        network, other = networks(N_WORDS)
        for each in (network, other):
            optimizer = LazyAdadelta(list(each.named_parameters()))
            each(torch.tensor([[5, 6]])).sum().backward()
            if each is network:
                each.words.weight.grad[5] = float("nan")
            optimizer.step()
        assert network.words.weight[5].isnan().all()
        rest = torch.arange(N_WORDS) != 5
        assert torch.equal(network.words.weight[rest], other.words.weight[rest])

    def test_sparse_gradients_are_refused(self):
        """Oracle: the message says what to set."""
        embedding = torch.nn.Embedding(4, 2, sparse=True)
        embedding(torch.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError, match="does not support sparse gradients; set 'sparse'"):
            LazyAdadelta(list(embedding.named_parameters())).step()

    def test_a_mistyped_option_is_an_error(self):
        """Oracle: AllenNLP's message names it."""
        with pytest.raises(ConfigurationError, match="learning_rate"):
            made("elmo_lazy_adadelta", networks(N_WORDS)[0], learning_rate=0.1)
