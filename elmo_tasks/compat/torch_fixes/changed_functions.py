"""Functions and arguments that torch has changed or removed since AllenNLP 2.10.1, which is for torch < 1.13."""

import logging
from collections.abc import Iterable
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = ["accept_verbose_reduce_on_plateau", "clip_norm_of_sparse_gradients", "name_cuda_devices"]

logger = logging.getLogger(__name__)


def name_cuda_devices(util: Module) -> None:
    """
    Symptom: `cuda_device: 0` on a machine without a GPU raises `RuntimeError: Cannot access accelerator device` instead
    of AllenNLP's `ConfigurationError` with its remedy.

    Cause: `torch.device(0)` has come to mean "device 0 of the accelerator of this machine". Seen with torch 2.13.
    """
    import torch

    def int_to_device(device: "int | torch.device") -> "torch.device":
        if isinstance(device, torch.device):
            return device
        return torch.device("cpu") if device < 0 else torch.device("cuda", device)

    util.int_to_device = int_to_device


def accept_verbose_reduce_on_plateau(pytorch_lr_schedulers: Module) -> None:
    """
    Symptom: the scheduler `reduce_on_plateau` raises `__init__() got an unexpected keyword argument 'verbose'`.

    Cause: torch has removed the argument (seen with torch 2.13). Configs may still set it; it then only causes
    a warning.
    """
    import torch

    scheduler = pytorch_lr_schedulers.ReduceOnPlateauLearningRateScheduler
    base = pytorch_lr_schedulers._PyTorchLearningRateSchedulerWithMetricsWrapper

    # `FromParams` reads the names and types of the arguments from here, so they are AllenNLP's.
    def __init__(
        self: Any,
        optimizer: pytorch_lr_schedulers.Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        threshold_mode: str = "rel",
        threshold: float = 1e-4,
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        if verbose:
            logger.warning(
                "'verbose' of 'reduce_on_plateau' has no effect: torch %s has no such option.", torch.__version__
            )
        base.__init__(
            self,
            torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimizer=optimizer,
                mode=mode,  # type: ignore[arg-type]
                factor=factor,
                patience=patience,
                threshold_mode=threshold_mode,  # type: ignore[arg-type]
                threshold=threshold,
                cooldown=cooldown,
                min_lr=min_lr,
                eps=eps,
            ),
        )

    scheduler.__init__ = __init__


def clip_norm_of_sparse_gradients(module: Module) -> None:
    """
    Symptom: `grad_norm` together with an embedding with `sparse: true` raises `NotImplementedError: Could not run
    'aten::linalg_vector_norm' with arguments from the 'SparseCPU' backend`.

    Cause: `torch.nn.utils.clip_grad_norm_` computes its norms with an operator that sparse tensors lack. Seen with
    torch 2.13. `module` is each module of AllenNLP that has imported the function by name.
    """
    import torch

    def clip_grad_norm_(parameters: "Iterable[torch.nn.Parameter]", max_norm: float) -> "torch.Tensor":
        values = []
        for parameter in parameters:
            if parameter.grad is not None and parameter.grad.is_sparse:
                # A row may occur in a sparse gradient several times; the norm is that of the sum.
                parameter.grad = parameter.grad.coalesce()
                values.append(parameter.grad._values())
            elif parameter.grad is not None:
                values.append(parameter.grad)
        norm = torch.nn.utils.get_total_norm(values)
        # Shape: (). The constant is torch's.
        factor = torch.clamp(float(max_norm) / (norm + 1e-6), max=1.0)
        for value in values:
            value.mul_(factor.to(value.device))
        return norm

    module.clip_grad_norm_ = clip_grad_norm_
