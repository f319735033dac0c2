import copy
import gc
import weakref

import pytest
import torch

from elmo_tasks.bilm import BilmOutput
from elmo_tasks.modules.contextual.contextual_model import SharedPass


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
            # The graph of the layers must not keep the batch alive.
            numbers = words.clone()
            return BilmOutput((numbers * self.weight, numbers * self.weight * 2), words > 0)

        return self.shared.output(words, [self.weight], mode, compute)


class TestSharedPass:
    def test_places_share_a_pass_and_their_gradients_add_up(self, weight):
        passes, words = Passes(weight), torch.ones(2)
        for n in (1, 2):
            weight.grad = None
            loss = passes(words).layers[0].sum() + 3 * passes(words).layers[1].sum()
            loss.backward()
            # A backward pass frees the graph of the layers, so the next step on the same batch is a
            # new pass.
            assert passes.n == n
            assert weight.grad.tolist() == [7, 7]

    def test_a_new_batch_mode_or_weight_is_a_new_pass(self, weight):
        passes, words = Passes(weight), torch.ones(2)
        for mode, n in (("training", 1), ("training", 1), ("evaluation", 2)):
            passes(words, mode)
            assert passes.n == n
        with torch.no_grad():
            weight.mul_(2)
        assert passes(words, "evaluation").layers[0].tolist() == [2, 2]
        words.mul_(2)
        assert passes(words, "evaluation").layers[0].tolist() == [4, 4]
        assert passes(torch.ones(2), "evaluation").layers[0].tolist() == [2, 2]

    def test_layers_are_freed_with_their_batch(self, weight):
        passes, words = Passes(weight), torch.ones(2)
        layer = weakref.ref(passes(words).layers[0])
        del words
        gc.collect()
        assert layer() is None

    def test_a_copy_starts_without_layers(self, weight):
        passes, words = Passes(weight), torch.ones(2)
        passes(words)
        passes.shared = copy.deepcopy(passes.shared)
        passes(words)
        assert passes.n == 2
