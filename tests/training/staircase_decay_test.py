import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.learning_rate_schedulers import LearningRateScheduler

from elmo_tasks.training import StaircaseDecay


def optimizer(*rates: float) -> torch.optim.Optimizer:
    return torch.optim.Adam([{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates])


def rates(optimizer: torch.optim.Optimizer) -> list[float]:
    return [group["lr"] for group in optimizer.param_groups]


class TestStaircaseDecay:
    @pytest.mark.parametrize("with_total", [True, False])
    def test_the_rate_falls_every_few_batches(self, with_total):
        """Oracle: TensorFlow's formula for a staircase: rate * 0.5 ** (batch // 3); ends of epochs change nothing."""
        adam = optimizer(0.1, 0.4)
        scheduler = StaircaseDecay(adam, decay_rate=0.5, batches_per_step=3)
        for batch in range(1, 11):
            scheduler.step_batch(batch if with_total else None)
            if batch % 4 == 0:
                scheduler.step(0.5)
            assert rates(adam) == pytest.approx([rate * 0.5 ** (batch // 3) for rate in (0.1, 0.4)])

    def test_a_recovered_run_continues_where_it_stopped(self):
        """Oracle: a scheduler that was not stopped."""
        states = []
        for stops in (False, True):
            adam = optimizer(0.1)
            scheduler = StaircaseDecay(adam, 0.5, 2)
            for _ in range(3):
                scheduler.step_batch()
            if stops:
                state, groups = scheduler.state_dict(), adam.state_dict()
                adam = optimizer(0.1)
                adam.load_state_dict(groups)
                scheduler = StaircaseDecay(adam, 0.5, 2)
                scheduler.load_state_dict(state)
            for _ in range(3):
                scheduler.step_batch()
            states.append(rates(adam))
        assert states[0] == states[1] == pytest.approx([0.1 * 0.5**3])

    def test_it_is_made_from_a_config(self):
        """Oracle: the name in AllenNLP's registry."""
        params = Params({"type": "elmo_staircase", "decay_rate": 0.999, "batches_per_step": 100})
        assert isinstance(LearningRateScheduler.from_params(params, optimizer=optimizer(0.1)), StaircaseDecay)

    @pytest.mark.parametrize(
        ("values", "message"),
        [((0.0, 1), "decay_rate .* 0.0"), ((1.5, 1), "decay_rate .* 1.5"), ((0.9, 0), "batches_per_step .* 0")],
    )
    def test_a_value_out_of_its_range_is_an_error(self, values, message):
        """Oracle: the message names the value."""
        with pytest.raises(ConfigurationError, match=message):
            StaircaseDecay(optimizer(0.1), *values)
