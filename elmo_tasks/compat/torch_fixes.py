"""
Fixes for functions of torch that have changed since AllenNLP 2.10.1, which was written for torch < 1.13.
"""

import inspect
import io
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.compat.torch_files import load_without_code

__all__ = [
    "accept_bfloat16",
    "accept_verbose_reduce_on_plateau",
    "allow_amp_without_cuda",
    "clip_norm_of_sparse_gradients",
    "encode_characters_in_single_precision",
    "flush_subnormals_in_evaluation",
    "flush_subnormals_in_training",
    "flushed_subnormals",
    "load_tensor_cache",
    "load_training_state",
    "name_cuda_devices",
    "use_current_amp",
]

logger = logging.getLogger(__name__)

# What a trainer on a CPU with `use_amp` asks for in place of `True`: see `allow_amp_without_cuda`.
_AMP_WITHOUT_CUDA = "cpu"


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


def load_training_state(checkpointer: Module) -> None:
    """
    Symptom: `allennlp train --recover` raises `UnpicklingError: Weights only load failed`.

    Cause: the state of the training may hold NumPy numbers, which `torch.load` refuses by default since torch 2.6. They
    are allowed; other objects are not, since unpickling them can run code, and a folder of runs may be shared. For
    callbacks whose state holds other objects, `ELMO_TASKS_ALLOW_PICKLE=1` unpickles whatever is there.
    """

    def load_checkpoint(self: Any) -> Any:
        latest = self.find_latest_checkpoint()
        if latest is None:
            return None
        model_path, training_state_path = latest
        # On the CPU: `load_state_dict` copies to the GPU, where two copies may not fit.
        return checkpointer.TrainerCheckpoint(
            load_without_code(model_path, model_path), load_without_code(training_state_path, training_state_path)
        )

    original = checkpointer.Checkpointer.load_checkpoint
    checkpointer.Checkpointer.load_checkpoint = wraps(original)(load_checkpoint)


def load_tensor_cache(file_utils: Module) -> None:
    """
    Symptom: reading from a `TensorCache` raises `UnpicklingError: Weights only load failed`, and writing to it
    warns that `TypedStorage is deprecated`.

    Cause: the tensors are written with pickle's highest protocol, which `torch.load` refuses unless it is told
    that the file can be trusted (torch >= 2.6). Tensors are now written with torch's own protocol; a cache that
    AllenNLP itself has written needs `ELMO_TASKS_ALLOW_PICKLE=1`.
    """
    import torch

    def __getitem__(self: Any, key: str) -> "torch.Tensor":
        # The cache in memory holds weak references: hold the tensor before looking it up again.
        tensor = self.cache_cache.get(key)
        if tensor is None:
            with self.lmdb_env.begin(write=False) as transaction:
                buffer = transaction.get(key.encode())
            if buffer is None:
                raise KeyError(key)
            tensor = load_without_code(io.BytesIO(buffer), f"entry {key!r} of the tensor cache {self.lmdb_env.path()}")
            self.cache_cache[key] = tensor
        return tensor

    def __setitem__(self: Any, key: str, tensor: "torch.Tensor") -> None:
        if self.read_only:
            raise ValueError("cannot write to a read-only cache")
        tensor = tensor.cpu()
        if tensor.untyped_storage().nbytes() != tensor.nbytes:
            tensor = tensor.clone()  # `torch.save` writes the whole storage behind a slice.
        buffer = io.BytesIO()
        torch.save(tensor.detach(), buffer)
        with self.lmdb_env.begin(write=True) as transaction:
            transaction.put(key.encode(), buffer.getbuffer())
        self.cache_cache[key] = tensor

    file_utils.TensorCache.__getitem__ = __getitem__
    file_utils.TensorCache.__setitem__ = __setitem__


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


def flush_subnormals_in_training(train: Module) -> None:
    """
    Symptom: on the CPU, a step of SST-5 with ELMo takes two and a half times as long as its arithmetic needs.

    Cause: that of `flushed_subnormals`, for which AllenNLP 2.10.1 has no option.
    """
    original = train._train_worker

    # The workers of distributed training find the function by its name, so it must keep it.
    @wraps(original)
    def _train_worker(*args: Any, **kwargs: Any) -> Any:
        with flushed_subnormals():
            return original(*args, **kwargs)

    train._train_worker = _train_worker


def flush_subnormals_in_evaluation(evaluate: Module) -> None:
    """
    Symptom: on the CPU, `allennlp evaluate` takes longer than its arithmetic needs.

    Cause: as in `flush_subnormals_in_training`.
    """
    original = evaluate.evaluate_from_args

    @wraps(original)
    def evaluate_from_args(*args: Any, **kwargs: Any) -> Any:
        with flushed_subnormals():
            return original(*args, **kwargs)

    evaluate.evaluate_from_args = evaluate_from_args


@contextmanager
def flushed_subnormals() -> Iterator[None]:
    """
    Numbers below 1.2e-38, the smallest normal one, count as zero in the block, in this thread and in those that torch
    starts meanwhile. Attention that is nearly one-hot, its products and its gradients are full of them, and x86
    processors compute with each of them a hundred times as slowly as with others. On processors where torch cannot set
    the mode, the block changes nothing.
    """
    import torch

    before = not (torch.full((1,), 2e-38) * 0.5).any()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


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
