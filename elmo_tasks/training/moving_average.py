"""A moving average of weights that can be recovered."""

from typing import Any

from allennlp.training.moving_average import ExponentialMovingAverage, MovingAverage

__all__ = ["RecoverableMovingAverage"]


@MovingAverage.register("elmo_exponential")
class RecoverableMovingAverage(ExponentialMovingAverage):
    """
    AllenNLP's exponential moving average, for runs that are interrupted and recovered. AllenNLP's own saves the weights
    themselves, and after `allennlp train --recover` averages those copies, which are not trained any more: validation
    and `best.th` then have the weights of the last step, without a warning.

    Registered as a `MovingAverage` with name "elmo_exponential". Its parameters are those of
    `ExponentialMovingAverage`.
    """

    def state_dict(self) -> dict[str, Any]:
        return {"shadows": self._shadows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """
        # Raises

        `ValueError`
            If the averages are not of the weights that are trained.
        """
        shadows = state_dict["shadows"]
        if shadows.keys() != self._shadows.keys():
            raise ValueError(
                "the averages of a recovered run must be of the weights that it trains, but only one of the two "
                f"has {', '.join(sorted(shadows.keys() ^ self._shadows.keys()))}: recover with the same config"
            )
        for name, shadow in self._shadows.items():
            shadow.copy_(shadows[name])
