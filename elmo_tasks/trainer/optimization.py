"""The optimizer, moving average and learning rate schedules that AllenNLP lacks."""

from typing import Any

import torch
from allennlp.training.learning_rate_schedulers import LearningRateScheduler, LinearWithWarmup
from allennlp.training.moving_average import ExponentialMovingAverage, MovingAverage
from allennlp.training.optimizers import AdamOptimizer, Optimizer

__all__ = ["FusedAdam", "LinearWithShortWarmup", "RecoverableMovingAverage", "StaircaseDecay"]


@Optimizer.register("elmo_fused_adam")
class FusedAdam(AdamOptimizer):
    """
    AllenNLP's `adam` with torch's fused kernel. It takes the same steps, and the checkpoints of
    both are interchangeable; it is several times as fast with many weights, such as tuned word
    vectors.
    """

    def __init__(
        self, model_parameters: list[tuple[str, torch.nn.Parameter]], **kwargs: Any
    ) -> None:
        super().__init__(model_parameters, **kwargs)
        for group in self.param_groups:
            group["fused"] = True

    def step(self, closure: Any = None) -> Any:
        parameters = []
        for group in self.param_groups:
            parameters += group["params"]
        for parameter in parameters:
            gradient = parameter.grad
            # The kernel reads both in memory order. Autograd gives them the same strides; other
            # code may not.
            if gradient is not None and gradient.stride() != parameter.stride():
                parameter.grad = torch.empty_like(parameter).copy_(gradient)
        result = super().step(closure)
        # The kernel does not increment the versions of the weights, on which autograd and our
        # caches rely.
        torch.autograd.graph.increment_version(parameters)
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """
        Loads the state of this class, or of AllenNLP's `adam`, which has different kernel options.
        """
        groups = []
        for group in state_dict["param_groups"]:
            groups.append({**group, "fused": True, "foreach": None})
        super().load_state_dict({**state_dict, "param_groups": groups})


@MovingAverage.register("elmo_exponential")
class RecoverableMovingAverage(ExponentialMovingAverage):
    """
    AllenNLP's exponential moving average, for runs that are interrupted and recovered. AllenNLP's
    own class saves the weights themselves. After `allennlp train --recover`, it averages those
    copies, which are no longer trained, so validation and `best.th` use the weights of the last
    step, without a warning.
    """

    def state_dict(self) -> dict[str, Any]:
        return {"shadows": self._shadows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name, shadow in self._shadows.items():
            shadow.copy_(state_dict["shadows"][name])


@LearningRateScheduler.register("elmo_staircase")
class StaircaseDecay(LearningRateScheduler):
    """
    Multiplies the learning rate by `decay_rate` every `batches_per_step` batches, as Lee et al.
    (2017) do for coreference. AllenNLP's `exponential` counts epochs.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, decay_rate: float, batches_per_step: int
    ) -> None:
        super().__init__(optimizer)
        self._decay_rate = decay_rate
        self._batches_per_step = batches_per_step
        self._n_batches = 0

    def get_values(self) -> list[float]:
        factor = self._decay_rate ** (self._n_batches // self._batches_per_step)
        return [value * factor for value in self.base_values]

    def step_batch(self, batch_num_total: int | None = None) -> None:
        # AllenNLP's trainer passes the number of batches since the beginning of training.
        if batch_num_total is None:
            self._n_batches += 1
        else:
            self._n_batches = batch_num_total
        for group, value in zip(self.optimizer.param_groups, self.get_values(), strict=True):
            group[self.param_group_field] = value


@LearningRateScheduler.register("elmo_linear_with_warmup")
class LinearWithShortWarmup(LinearWithWarmup):
    """
    AllenNLP's `linear_with_warmup`, with a warm-up of at most a tenth of the steps: a longer one
    could take most or all of a short training run.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        num_epochs: int,
        num_steps_per_epoch: int,
        warmup_steps: int,
    ) -> None:
        # A loader that does not know its length gives `None`, for which AllenNLP has an error.
        if num_steps_per_epoch is not None:
            warmup_steps = min(warmup_steps, num_epochs * num_steps_per_epoch // 10)
        super().__init__(optimizer, num_epochs, num_steps_per_epoch, warmup_steps)
