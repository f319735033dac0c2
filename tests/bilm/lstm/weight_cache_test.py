import copy
import pickle

import pytest
import torch

from elmo_tasks.bilm.lstm import weight_cache
from elmo_tasks.bilm.lstm.weight_cache import WeightCache


class Counting:
    """A `WeightCache` of the parameters' sum, and how often it was made."""

    def __init__(self) -> None:
        self.cache: WeightCache[float] = WeightCache()
        self.n_made = 0

    def __call__(self, parameters: list[torch.Tensor], key: object = None) -> int:
        def make() -> float:
            self.n_made += 1
            return sum(float(parameter.double().sum()) for parameter in parameters)

        assert self.cache(parameters, key, make) == sum(float(each.detach().double().sum()) for each in parameters)
        return self.n_made


class TestWeightCache:
    def test_the_value_of_unchanged_parameters_is_made_once(self):
        """Oracle: how often it was made."""
        cached, linear = Counting(), torch.nn.Linear(2, 3).requires_grad_(False)
        assert [cached(list(linear.parameters())) for _ in range(3)] == [1, 1, 1]

    def test_for_trained_parameters_nothing_is_kept(self):
        """Oracle: how often it was made; AllenNLP's moving averages are swapped by way of `.data`, unnoticed."""
        cached, linear = Counting(), torch.nn.Linear(2, 3)
        assert [cached(list(linear.parameters())) for _ in range(3)] == [1, 2, 3]

    @pytest.mark.parametrize("is_asked", [True, False])
    def test_parameters_that_were_trained_meanwhile_have_a_new_value(self, is_asked):
        """Oracle: how often it was made; the change is by way of `.data`, unnoticed."""
        cached, linear = Counting(), torch.nn.Linear(2, 3).requires_grad_(False)
        parameters = list(linear.parameters())
        assert cached(parameters) == 1
        linear.requires_grad_(True)
        if is_asked:
            assert cached(parameters) == 2
        else:
            cached.cache.forget()
        linear.weight.data.add_(1)
        linear.requires_grad_(False)
        assert cached(parameters) == (3 if is_asked else 2)

    def test_changed_parameters_have_a_new_value(self):
        """Oracle: how often it was made: in place, by loading, by assigning, by another type, of fewer parameters."""
        cached, linear = Counting(), torch.nn.Linear(2, 3).requires_grad_(False)

        def times() -> int:
            return cached(list(linear.parameters()))

        assert times() == 1
        linear.bias[1] = 4.0
        assert (times(), times()) == (2, 2)
        torch.nn.init.normal_(linear.weight)
        assert (times(), times()) == (3, 3)
        linear.load_state_dict(torch.nn.Linear(2, 3).state_dict())
        assert (times(), times()) == (4, 4)
        linear.load_state_dict(torch.nn.Linear(2, 3).requires_grad_(False).state_dict(), assign=True)
        linear.requires_grad_(False)
        assert (times(), times()) == (5, 5)
        linear.double()
        assert (times(), times()) == (6, 6)
        assert cached([linear.weight]) == 7

    def test_equal_parameters_elsewhere_have_a_new_value(self):
        """Oracle: how often it was made; the old ones are held, so that no new ones can be allocated in their place."""
        cached = Counting()
        for n_made in range(1, 20):
            assert cached([torch.ones(1000)]) == n_made

    def test_another_key_has_a_new_value(self):
        """Oracle: how often it was made."""
        cached, parameters = Counting(), [torch.ones(2)]
        keys = [torch.float32, torch.float32, torch.bfloat16, torch.bfloat16, torch.float32]
        assert [cached(parameters, key) for key in keys] == [1, 1, 2, 2, 3]

    @pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda each: pickle.loads(pickle.dumps(each))])
    def test_copies_start_empty(self, copied):
        """Oracle: how often it was made; the value cannot be pickled."""
        cached: WeightCache[object] = WeightCache()
        parameters, values = [torch.ones(2)], [lambda: 1, lambda: 2]
        assert cached(parameters, None, lambda: values[0]) is values[0]
        other = copied(cached)
        assert other(parameters, None, lambda: values[1]) is values[1]
        assert cached(parameters, None, lambda: values[1]) is values[0]

    def test_parameters_of_inference_mode_are_accepted(self):
        """Oracle: how often it was made, in inference mode and after it."""
        cached = Counting()
        with torch.inference_mode():
            parameters = [torch.ones(3)]
            assert (cached(parameters), cached(parameters)) == (1, 1)
        assert cached(parameters) == 1
        assert cached([parameters[0].clone()]) == 2

    def test_it_recovers_from_a_failure(self):
        """Oracle: the value, made after a failure with other parameters and with the same."""
        cached: WeightCache[int] = WeightCache()
        parameters = [torch.ones(2)]

        def fail() -> int:
            raise MemoryError

        assert cached(parameters, "float32", lambda: 1) == 1
        with pytest.raises(MemoryError):
            cached(parameters, "bf16", fail)
        assert cached(parameters, "float32", lambda: 2) == 2

    def test_it_is_made_without_gradients(self):
        """Oracle: torch."""
        cached: WeightCache[torch.Tensor] = WeightCache()
        weight = torch.ones(2, requires_grad=True)
        assert not cached([weight], None, lambda: 2.0 * weight).requires_grad

    def test_a_thread_that_makes_another_value_takes_none_away(self, monkeypatch):
        """Oracle: the value; the other thread comes between the making of a value and its return, and fails."""
        linear = torch.nn.Linear(2, 3).requires_grad_(False)
        cache: WeightCache[str] = WeightCache()
        parameters = list(linear.parameters())

        def fail() -> str:
            raise ValueError

        class Interrupted(weight_cache.WeightsState):
            def __init__(self, weights) -> None:
                with pytest.raises(ValueError):
                    cache(parameters, "other", fail)
                super().__init__(weights)

        monkeypatch.setattr(weight_cache, "WeightsState", Interrupted)
        assert cache(parameters, "one", lambda: "made") == "made"
