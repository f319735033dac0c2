"""Mixed precision as torch has it now: autocast on a CPU too, and bfloat16."""

import inspect
import logging
from functools import wraps
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = [
    "accept_bfloat16",
    "allow_amp_without_cuda",
    "encode_characters_in_single_precision",
    "use_current_amp",
]

logger = logging.getLogger(__name__)

# What a trainer on a CPU with `use_amp` asks for in place of `True`: see `allow_amp_without_cuda`.
_AMP_WITHOUT_CUDA = "cpu"


def use_current_amp(module: Module) -> None:
    """
    Symptom: `FutureWarning: torch.cuda.amp.autocast(args...) is deprecated` on every epoch, with or without
    `use_amp`.

    Cause: `torch.cuda.amp` has become `torch.amp`, which takes the type of the device. Seen with torch 2.13.
    `module` is each module of AllenNLP that has imported `amp` by name.
    """
    import torch

    def autocast(enabled: bool | str = True) -> "torch.amp.autocast":
        if enabled == _AMP_WITHOUT_CUDA:
            return torch.amp.autocast("cpu", dtype=torch.bfloat16)
        return torch.amp.autocast("cuda", enabled=bool(enabled))

    def grad_scaler() -> "torch.amp.GradScaler":
        return torch.amp.GradScaler("cuda")

    module.amp = SimpleNamespace(autocast=autocast, GradScaler=grad_scaler)


def allow_amp_without_cuda(trainers: Module) -> None:
    """
    Symptom: `use_amp` without CUDA raises `ValueError: Using AMP requires a cuda device`.

    Cause: AllenNLP 2.10.1 was written when torch had autocast on CUDA only. On a CPU, training and validation now run
    under autocast to bfloat16. It has the range of float32, so that no gradient is scaled, whatever `grad_scaling` is.
    On a CPU without instructions for bfloat16, this is a warning.
    """
    import torch

    trainer = trainers.GradientDescentTrainer
    original = trainer.__init__
    signature = inspect.signature(original)

    @wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(self, *args, **kwargs).arguments
        device = given.get("cuda_device")
        # AllenNLP's default.
        device = -1 if device is None and not torch.cuda.device_count() else device
        if not given.get("use_amp") or device not in (-1, torch.device("cpu")):
            original(self, *args, **kwargs)
            return
        given["use_amp"] = False
        given |= given.pop("kwargs", {})
        original(**given)
        self._use_amp = _AMP_WITHOUT_CUDA
        precision = import_module("elmo_tasks.bilm.lstm.precision")
        if self._primary and not precision.supports_bf16(torch.device("cpu")):
            logger.warning(
                "use_amp trains in bfloat16, for which this CPU has no instructions: it is slower than float32. Set "
                "use_amp to false"
            )

    trainer.__init__ = __init__


def accept_bfloat16(util: Module) -> None:
    """
    Symptom: with `use_amp` on a CPU, models of AllenNLP such as `simple_tagger` raise `TypeError: Does not support
    dtype torch.bfloat16`.

    Cause: bfloat16 is newer than `tiny_value_of_dtype`. Its range is that of float32, and so is the value. The loss of
    sequences is now computed in float32: unlike that of CUDA, autocast on a CPU leaves it the type of the logits.
    """
    import torch

    tiny_value, loss = util.tiny_value_of_dtype, util.sequence_cross_entropy_with_logits

    @wraps(tiny_value)
    def tiny_value_of_dtype(dtype: "torch.dtype") -> float:
        value: float = tiny_value(torch.float32 if dtype == torch.bfloat16 else dtype)
        return value

    @wraps(loss)
    def sequence_cross_entropy_with_logits(logits: "torch.Tensor", *args: Any, **kwargs: Any) -> "torch.Tensor":
        logits = logits.float() if logits.dtype == torch.bfloat16 else logits
        result: torch.Tensor = loss(logits, *args, **kwargs)
        return result

    util.tiny_value_of_dtype = tiny_value_of_dtype
    util.sequence_cross_entropy_with_logits = sequence_cross_entropy_with_logits


def encode_characters_in_single_precision(cnn_encoder: Module) -> None:
    """
    Symptom: with `use_amp`, words that are shorter than a filter of a `cnn` encoder get vectors of -65,504 (float16) or
    -3e38 (bfloat16), and the loss is soon NaN.

    Cause: the encoder marks padding with the smallest number of one type and searches for that of another, because
    under autocast a convolution and a sum have different types. Seen with torch 2.13.
    """
    import torch

    original = cnn_encoder.CnnEncoder.forward

    @wraps(original)
    def forward(self: Any, tokens: "torch.Tensor", mask: "torch.BoolTensor") -> "torch.Tensor":
        with torch.autocast(tokens.device.type, enabled=False):
            return original(self, tokens.to(self.conv_layer_0.weight.dtype), mask)

    cnn_encoder.CnnEncoder.forward = forward
