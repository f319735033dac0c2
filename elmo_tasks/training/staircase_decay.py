"""A learning rate that falls in steps of several batches."""

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.training.learning_rate_schedulers import LearningRateScheduler

__all__ = ["StaircaseDecay"]


@LearningRateScheduler.register("elmo_staircase")
class StaircaseDecay(LearningRateScheduler):
    """
    Multiplies the learning rate by a factor every few batches, as the authors of the coreference model do
    (Lee et al. 2017).

    Registered as a `LearningRateScheduler` with name "elmo_staircase". AllenNLP's `exponential` counts epochs.

    # Parameters

    optimizer : `torch.optim.Optimizer`
        This argument does not get an entry in a config.
    decay_rate : `float`
        The factor.
    batches_per_step : `int`
        The batches between two steps.

    # Raises

    `ConfigurationError`
        If a value is out of its range.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, decay_rate: float, batches_per_step: int) -> None:
        if not 0.0 < decay_rate <= 1.0:
            raise ConfigurationError(f"decay_rate must be above 0 and at most 1, but is {decay_rate}")
        if batches_per_step < 1:
            raise ConfigurationError(f"batches_per_step must be at least 1, but is {batches_per_step}")
        super().__init__(optimizer)
        self._decay_rate = decay_rate
        self._batches_per_step = batches_per_step
        self._n_batches = 0

    def get_values(self) -> list[float]:
        factor = self._decay_rate ** (self._n_batches // self._batches_per_step)
        return [value * factor for value in self.base_values]

    def step_batch(self, batch_num_total: int | None = None) -> None:
        """
        # Parameters

        batch_num_total : `int`, optional
            The batches since the training began; by default one more than before.
        """
        self._n_batches = self._n_batches + 1 if batch_num_total is None else batch_num_total
        for group, value in zip(self.optimizer.param_groups, self.get_values(), strict=True):
            group[self.param_group_field] = value
