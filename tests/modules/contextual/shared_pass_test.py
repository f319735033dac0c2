import copy
import gc
import weakref

import pytest
import torch

from elmo_tasks.bilm import BilmOutput
from elmo_tasks.modules.contextual.shared_pass import SharedPass


@pytest.fixture
def weight():
    return torch.nn.Parameter(torch.ones(2))


class Passes:
    """Counts how often layers are computed."""

    def __init__(self, weight):
        self.weight = weight
        self.shared = SharedPass()
        self.n = 0

    def __call__(self, words, mode=None):
        def compute():
            self.n += 1
            # What computes a layer does not keep the batch itself.
            numbers = words.clone()
            return BilmOutput((numbers * self.weight, numbers * self.weight * 2), words > 0)

        return self.shared.output(words, [self.weight], mode, compute)


class TestSharedPass:
    def test_all_who_ask_in_one_step_share_a_pass_and_their_gradients_add_up(self, weight):
        """Oracle: the number of passes, and the gradient by hand."""
        passes, words = Passes(weight), torch.ones(2)
        loss = passes(words).layers[0].sum() + 3 * passes(words).layers[1].sum()
        assert passes.n == 1
        loss.backward()
        assert weight.grad.tolist() == [7, 7]

    def test_after_a_gradient_the_layers_are_computed_again(self, weight):
        """Oracle: the number of passes; a second step over the same batch has the same gradient, without an error."""
        passes, words = Passes(weight), torch.ones(2)
        for n in (1, 2):
            weight.grad = None
            passes(words).layers[1].sum().backward()
            assert passes.n == n
            assert weight.grad.tolist() == [2, 2]

    def test_another_mode_or_weight_is_another_pass(self, weight):
        """Oracle: the number of passes."""
        passes, words = Passes(weight), torch.ones(2)
        passes(words, "training")
        passes(words, "training")
        passes(words, "evaluation")
        assert passes.n == 2
        with torch.no_grad():
            weight.mul_(2)
        assert passes(words, "evaluation").layers[0].tolist() == [2, 2]
        assert passes.n == 3

    def test_a_training_forgets_what_was_evaluated(self, weight):
        """Oracle: the number of passes, and the layers of the changed weight, whose change cannot be seen."""
        passes, dev, words = Passes(weight), torch.ones(2), torch.ones(2)
        with torch.no_grad():
            passes(dev)
            passes(dev)
        assert passes.n == 1
        passes(words).layers[0].sum().backward()
        weight.data.mul_(2)
        with torch.no_grad():
            assert passes(dev).layers[0].tolist() == [2, 2]
        assert passes.n == 3

    def test_layers_with_gradients_go_with_their_batch(self, weight):
        """Oracle: a weak reference to a layer, and one to the batch."""
        passes, words = Passes(weight), torch.ones(2)
        layer, batch = weakref.ref(passes(words).layers[0]), weakref.ref(words)
        del words
        gc.collect()
        assert batch() is None
        assert layer() is None

    def test_only_the_last_batches_have_layers(self, weight):
        """Oracle: the number of passes, for batches that are all alive, as a trainer that accumulates gradients has."""
        passes = Passes(weight.detach())
        batches = [torch.full((2,), number + 1.0) for number in range(6)]
        for words in [*batches, *batches[2:]]:
            passes(words)
        assert passes.n == 6
        passes(batches[0])
        assert passes.n == 7

    def test_a_copy_starts_without_layers(self, weight):
        """Oracle: the number of passes."""
        passes, words = Passes(weight), torch.ones(2)
        passes(words)
        passes.shared = copy.deepcopy(passes.shared)
        passes(words)
        assert passes.n == 2
