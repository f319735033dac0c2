"""Linear layers with a packed weight, which stays the same from call to call."""

from collections.abc import Sequence

import torch
from torch.nn.functional import linear

from elmo_tasks.bilm.lstm import onednn

__all__ = ["PackedLinear", "StackedLinear"]


class PackedLinear:
    """
    `x W^T + b` for a weight that is used many times, without gradients. On a CPU the weight is laid out once for
    oneDNN's kernels: in float32 they are 1.7 times as fast as what `torch.addmm` calls on an AMD processor, and a row
    of the result does not depend on how many rows there are. Where oneDNN is not usable, `torch.nn.functional.linear`
    computes the products.

    # Parameters

    weight
        Shape `(output_dim, input_dim)`.
    bias
        Shape `(output_dim,)`.
    dtype
        The type of the products, the inputs and the results. `None`: that of `weight`.
    """

    def __init__(
        self, weight: torch.Tensor, bias: torch.Tensor | None = None, *, dtype: torch.dtype | None = None
    ) -> None:
        weight = weight.detach().to(dtype or weight.dtype).contiguous()
        self._bias = None if bias is None else bias.detach().to(weight.dtype)
        self._is_packed = weight.device.type == "cpu" and onednn.is_usable(weight.dtype)
        self._weight = onednn.pack_weight(weight) if self._is_packed else weight

    def __call__(self, inputs: torch.Tensor, addend: torch.Tensor | None = None) -> torch.Tensor:
        """
        # Parameters

        inputs
            Shape `(n_rows, input_dim)`.
        addend
            Shape `(n_rows, output_dim)`: added to the result; only without a bias.

        # Returns

        `torch.Tensor`
            Shape `(n_rows, output_dim)`.
        """
        if not self._is_packed:
            result = linear(inputs, self._weight, self._bias)
            return result if addend is None else result.add_(addend)
        if addend is None:
            return onednn.multiply(inputs, self._weight, self._bias)
        return onednn.multiply_add(inputs, self._weight, addend)


class StackedLinear:
    """
    Linear layers of the same shape, each with a weight of its own: on CUDA in one kernel.

    # Parameters

    weights
        Shape `(n, output_dim, input_dim)`.
    biases
        Shape `(n, output_dim)`.
    dtype
        See `PackedLinear`.
    """

    def __init__(self, weights: torch.Tensor, biases: torch.Tensor | None = None, *, dtype: torch.dtype) -> None:
        self._layers: list[PackedLinear] = []
        if weights.is_cuda:
            self._weights = weights.detach().to(dtype).contiguous().transpose(1, 2)
            self._biases = None if biases is None else biases.detach().to(dtype).unsqueeze(1)
        else:
            each_bias = [None] * len(weights) if biases is None else biases
            self._layers = [
                PackedLinear(weight, bias, dtype=dtype) for weight, bias in zip(weights, each_bias, strict=True)
            ]

    def __call__(
        self, inputs: torch.Tensor, addends: torch.Tensor | Sequence[torch.Tensor] | None = None
    ) -> torch.Tensor | Sequence[torch.Tensor]:
        """
        # Parameters

        inputs
            Shape `(n, n_rows, input_dim)`.
        addends
            Added to the result, in the same form; only without biases.

        # Returns

        `Union[torch.Tensor, Sequence[torch.Tensor]]`
            `n` tensors of shape `(n_rows, output_dim)`; on CUDA stacked in one.
        """
        if self._layers:
            each_addend = [None] * len(self._layers) if addends is None else addends
            return [layer(rows, addend) for layer, rows, addend in zip(self._layers, inputs, each_addend, strict=True)]
        addends = self._biases if addends is None else addends
        if addends is None:
            return torch.bmm(inputs, self._weights)
        assert isinstance(addends, torch.Tensor)
        return torch.baddbmm(addends, inputs, self._weights)
