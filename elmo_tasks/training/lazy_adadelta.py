"""Adadelta that does not touch the word vectors of which a batch has none."""

from typing import Any, Optional

import torch
from allennlp.training.optimizers import Optimizer, make_parameter_groups

__all__ = ["LazyAdadelta"]

# A matrix with fewer rows is updated as a whole: finding the rows costs more than it saves.
_LEAST_ROWS = 1024


@Optimizer.register("elmo_lazy_adadelta")
class LazyAdadelta(Optimizer, torch.optim.Adadelta):
    """
    AllenNLP's `adadelta` for models with tuned word vectors. A row with a gradient of zero keeps its weights, and its
    two averages are multiplied by `rho`; here that is made up for when the row next has a gradient, by `rho` to the
    power of the steps since. So the steps are those of `adadelta` up to rounding, and a matrix of 40,000 word vectors
    costs what the words of the batch cost. Checkpoints are interchangeable with `adadelta`'s.

    Registered as an `Optimizer` with name "elmo_lazy_adadelta". Its parameters are those of AllenNLP's `adadelta`.
    With a `weight_decay` no row is without a gradient, and all are updated.

    Zeiler. *ADADELTA: an adaptive learning rate method.* 2012. Algorithm 1.
    """

    def __init__(
        self,
        model_parameters: list[tuple[str, torch.nn.Parameter]],
        parameter_groups: Optional[list[tuple[list[str], dict[str, Any]]]] = None,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-06,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(
            params=make_parameter_groups(model_parameters, parameter_groups),
            lr=lr,
            rho=rho,
            eps=eps,
            weight_decay=weight_decay,
        )

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Updates the weights; see `torch.optim.Adadelta.step`."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is not None:
                    self._update(weights, weights.grad, group)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """The state as `torch.optim.Adadelta` has it: every row's averages are those of the last step."""
        for group in self.param_groups:
            for weights in group["params"]:
                if weights in self.state:
                    self._catch_up(self.state[weights], group["rho"])
        return super().state_dict()

    def _update(self, weights: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        if gradient.is_sparse:
            raise RuntimeError("LazyAdadelta does not support sparse gradients; set 'sparse' of the embedding to false")
        state = self.state[weights]
        if not state:
            state["step"] = torch.zeros(())
            state["square_avg"] = torch.zeros_like(weights)
            state["acc_delta"] = torch.zeros_like(weights)
        if group["weight_decay"]:
            gradient = gradient.add(weights, alpha=group["weight_decay"])

        rows = None if group["weight_decay"] else _rows_with_gradient(gradient)
        if rows is None:
            self._catch_up(state, group["rho"])
            state["step"] += 1
            _adadelta(weights, gradient, state["square_avg"], state["acc_delta"], group)
            return

        if "row_steps" not in state:
            state["row_steps"] = state["step"].to(weights.device).repeat(weights.size(0))
        # The averages of the rows as they are before this step.
        # Shape: (n_rows, 1)
        decay = (group["rho"] ** (state["step"] - state["row_steps"][rows])).unsqueeze(1)
        state["step"] += 1
        state["row_steps"][rows] = state["step"].to(weights.device)
        # Shape of each: (n_rows, dim)
        square_average, delta_average = (state[name][rows].mul_(decay) for name in ("square_avg", "acc_delta"))
        updated = weights[rows]
        _adadelta(updated, gradient[rows], square_average, delta_average, group)
        weights[rows], state["square_avg"][rows], state["acc_delta"][rows] = updated, square_average, delta_average

    def _catch_up(self, state: dict[str, Any], rho: float) -> None:
        """Multiplies the averages of all rows by what their missed steps have left undone."""
        row_steps = state.pop("row_steps", None)
        if row_steps is not None:
            decay = (rho ** (state["step"].to(row_steps.device) - row_steps)).unsqueeze(1)
            state["square_avg"].mul_(decay)
            state["acc_delta"].mul_(decay)


def _rows_with_gradient(gradient: torch.Tensor) -> Optional[torch.Tensor]:
    """Indices of the rows that are not all zero; none, if all rows are to be updated together."""
    if gradient.dim() != 2 or gradient.size(0) < _LEAST_ROWS:
        return None
    # A product is the quickest sum of rows there is. Shape: (n_rows,)
    rows = gradient.abs().mv(gradient.new_ones(gradient.size(1))).nonzero().squeeze(1)
    return rows if 2 * len(rows) < gradient.size(0) else None


def _adadelta(
    weights: torch.Tensor,
    gradient: torch.Tensor,
    square_average: torch.Tensor,
    delta_average: torch.Tensor,
    group: dict[str, Any],
) -> None:
    """One step of all of `weights`; all tensors but `gradient` are changed, and are of one shape."""
    rho, eps = group["rho"], group["eps"]
    square_average.mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
    delta = delta_average.add(eps).sqrt_()
    delta.div_(square_average.add(eps).sqrt_()).mul_(gradient)
    delta_average.mul_(rho).addcmul_(delta, delta, value=1 - rho)
    weights.add_(delta, alpha=-group["lr"])
