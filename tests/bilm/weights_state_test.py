import copy
import hashlib
import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from elmo_tasks.bilm.weights_state import WeightsState, bilm_digest, n_changes
from tests.bilm.helpers import SMALL, random_bilm


def linear() -> torch.nn.Linear:
    return torch.nn.Linear(2, 3).requires_grad_(False)


# Every way in which weights change but by way of `.data`'s content, and what does not change them.
CHANGES: dict[str, Callable[[torch.nn.Linear], object]] = {
    "in place": lambda layer: layer.weight[0, 1].add_(1.0),
    "to the same": lambda layer: layer.weight.add_(0.0),
    "drawn": lambda layer: torch.nn.init.normal_(layer.weight),
    "loaded": lambda layer: layer.load_state_dict(linear().state_dict()),
    "exchanged": lambda layer: layer.load_state_dict(linear().state_dict(), assign=True),
    "exchanged data": lambda layer: setattr(layer.weight, "data", layer.weight.clone()),
    "another type": lambda layer: layer.double(),
    "one missing": lambda layer: setattr(layer, "bias", None),
    "one more": lambda layer: layer.register_parameter("more", torch.nn.Parameter(torch.ones(1))),
}
NO_CHANGES: dict[str, Callable[[torch.nn.Linear], object]] = {
    "nothing": lambda layer: None,
    "used": lambda layer: layer(torch.ones(4, 2)),
    "read": lambda layer: layer.weight.sum(),
    "the same type": lambda layer: layer.float(),
    "required gradients": lambda layer: layer.requires_grad_(),
    "the list": lambda layer: list(layer.parameters()).clear(),
}


class TestWeightsState:
    @pytest.mark.parametrize("change", CHANGES)
    def test_changed_weights_are_others(self, change):
        """Oracle: the state before and after; that of the changed weights is theirs again."""
        layer = linear()
        state = WeightsState(layer.parameters())
        CHANGES[change](layer)
        assert not state.is_of(layer.parameters())
        assert WeightsState(layer.parameters()).is_of(layer.parameters())

    @pytest.mark.parametrize("use", NO_CHANGES)
    def test_weights_that_are_used_are_the_same(self, use):
        """Oracle: the state before."""
        layer = linear()
        state = WeightsState(layer.parameters())
        NO_CHANGES[use](layer)
        assert state.is_of(layer.parameters())

    def test_equal_weights_in_another_order_are_others(self):
        """Oracle: the same two tensors, reversed."""
        first, second = torch.ones(2), torch.ones(2)
        assert not WeightsState([first, second]).is_of([second, first])

    @pytest.mark.parametrize(
        "view",
        [lambda weight: weight.view(3, 2), lambda weight: weight[:1], lambda weight: weight.as_strided((2, 3), (1, 2))],
    )
    def test_another_view_of_the_same_memory_is_another(self, view):
        """Oracle: place in memory and changes, which are the same; shape or strides, which are not."""
        weight = torch.ones(2, 3)
        state, other = WeightsState([weight]), view(weight)
        assert (other.data_ptr(), n_changes(other)) == (weight.data_ptr(), n_changes(weight))
        assert state.is_of([weight]) and not state.is_of([other])

    def test_no_new_weights_can_take_the_place_of_the_old(self):
        """Oracle: memory, which is given again to tensors of the same size when none holds it."""
        state = WeightsState([torch.ones(1000)])
        assert not any(state.is_of([torch.ones(1000)]) for _ in range(20))

    def test_it_does_not_copy(self):
        """Oracle: the value of the weight that it holds, changed."""
        weight = torch.ones(2)
        state = WeightsState([weight])
        weight.fill_(3.0)
        assert state._weights[0][0].tolist() == [3.0, 3.0]

    def test_weights_of_inference_mode_count_no_changes(self):
        """Oracle: the documented limit; another tensor is still another."""
        with torch.inference_mode():
            weight = torch.ones(2)
            state = WeightsState([weight])
            weight.fill_(3.0)
        assert n_changes(weight) is None
        assert state.is_of([weight])
        assert not state.is_of([weight.clone()])

    @pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda state: pickle.loads(pickle.dumps(state))])
    def test_a_copy_is_of_no_weights(self, copied):
        """Oracle: the original, which stays; the size of what is pickled."""
        weight = torch.ones(10_000)
        state = WeightsState([weight])
        assert not copied(state).is_of([weight])
        assert state.is_of([weight])
        assert len(pickle.dumps(state)) < 200


class TestBilmDigest:
    def test_it_is_a_hash_of_all_that_makes_a_bilm(self):
        """Oracle: hashlib, of options, names, types, shapes and bytes in alphabetical order."""
        weights = {"b": torch.tensor([[1.5, -2.0]]), "a": torch.tensor([1, 2], dtype=torch.bfloat16)}
        digest = hashlib.blake2b(repr(SMALL).encode(), digest_size=32)
        for name, dtype, shape, content in (
            ("a", torch.bfloat16, (2,), weights["a"].view(torch.int16).numpy().tobytes()),
            ("b", torch.float32, (1, 2), weights["b"].numpy().tobytes()),
        ):
            digest.update(repr((name, dtype, shape)).encode() + content)
        assert bilm_digest(SMALL, weights) == digest.digest()

    def test_the_same_bilm_has_the_same(self):
        """Oracle: another biLM with the same weights, not contiguous, and its state in place of its parameters."""
        bilm = random_bilm()
        expected = bilm_digest(SMALL, dict(bilm.named_parameters()))
        assert bilm_digest(SMALL, random_bilm().state_dict()) == expected
        turned = {name: weight.t().contiguous().t() for name, weight in bilm.state_dict().items() if weight.dim() == 2}
        assert bilm_digest(SMALL, {**bilm.state_dict(), **turned}) == expected

    @pytest.mark.parametrize("name", dict(random_bilm().named_parameters()))
    def test_one_number_makes_it_another(self, name):
        """Oracle: the digest before."""
        weights = random_bilm().state_dict()
        before = bilm_digest(SMALL, weights)
        weights[name].view(-1)[-1] += 1e-3
        assert bilm_digest(SMALL, weights) != before

    def test_another_shape_type_clip_or_start_makes_it_another(self):
        """Oracle: the digest before."""
        weights = {"a": torch.zeros(2, 3)}
        others = [({"a": torch.zeros(3, 2)}, SMALL), ({"a": torch.zeros(2, 3).half()}, SMALL), ({}, SMALL)]
        others += [({"b": weights["a"]}, SMALL), (weights, replace(SMALL, cell_clip=None))]
        others += [(weights, replace(SMALL, start_state="settled"))]
        found = {bilm_digest(options, each) for each, options in [(weights, SMALL), *others]}
        assert len(found) == 1 + len(others)
