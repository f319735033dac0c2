"""Functions that torch and transformers changed or removed after AllenNLP 2.10.1."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from elmo_tasks.compat.import_hooks import Module, after_import, around_import, replaces


@after_import("allennlp.training.learning_rate_schedulers.pytorch_lr_schedulers")
def accept_verbose_reduce_on_plateau(pytorch_lr_schedulers: Module) -> None:
    """
    Symptom: the scheduler `reduce_on_plateau` raises `unexpected keyword argument 'verbose'`.
    Cause: torch has removed the argument (seen with torch 2.13). Configs may still set it, without effect.
    """
    import torch

    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau

    def without_verbose(verbose: bool = False, **arguments: Any) -> Any:
        return plateau(**arguments)

    @replaces(pytorch_lr_schedulers.ReduceOnPlateauLearningRateScheduler, "__init__")
    def initialize(original: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        with mock.patch.object(torch.optim.lr_scheduler, "ReduceLROnPlateau", without_verbose):
            original(*args, **kwargs)


@after_import("allennlp.training.checkpointer")
def accept_numbers_in_checkpoints(checkpointer: Module) -> None:
    """
    Symptom: `allennlp train --recover` raises `UnpicklingError: Weights only load failed`.
    Cause: the training state may contain NumPy numbers, which `torch.load` refuses by default since torch 2.6. Now they
    are allowed, but other objects are not, because unpickling them can run code.
    """
    import numpy
    import torch

    functions: list[Any] = [value.__reduce__()[0] for value in (numpy.empty(0), numpy.float64(0))]
    dtypes = {type(numpy.dtype(code)) for code in numpy.typecodes["All"] if code not in "OV"}
    torch.serialization.add_safe_globals([numpy.ndarray, numpy.dtype, *functions, *dtypes])


@after_import("allennlp.common.cached_transformers")
def accept_current_tokenizers(cached_transformers: Module) -> None:
    """
    Symptom: `PretrainedTransformerTokenizer` raises `add_special_tokens conflicts with the method`, or `BertTokenizer
    has no attribute encode_plus`.
    Cause: AllenNLP passes `add_special_tokens` to `AutoTokenizer.from_pretrained`; transformers (seen with 4.48 and
    4.57) refuses keywords that are also names of the tokenizer's methods. AllenNLP passes the flag again in every call
    to `encode`, so dropping it here does not change any output. transformers 5 has removed two methods.
    """

    @replaces(cached_transformers, "get_tokenizer")
    def get_tokenizer(original: Callable[..., Any], model_name: str, **kwargs: Any) -> Any:
        kwargs.pop("add_special_tokens", None)
        tokenizer = original(model_name, **kwargs)
        if not hasattr(tokenizer, "encode_plus"):
            tokenizer.encode_plus = tokenizer.__call__
        return tokenizer


@after_import("allennlp.training.gradient_descent_trainer")
def silence_warnings_of_amp(gradient_descent_trainer: Module) -> None:
    """
    Symptom: every epoch prints `FutureWarning: torch.cuda.amp.autocast(args...) is deprecated`.
    Cause: the trainer uses it also without mixed precision. The new name does the same.
    """
    warnings.filterwarnings("ignore", r"`torch\.cuda\.amp", FutureWarning)


@around_import("allennlp.training.optimizers")
@contextmanager
def restore_transformers_adamw(module: str) -> Iterator[None]:
    """
    Symptom: `import allennlp.training` raises `module transformers has no attribute AdamW`.
    Cause: AllenNLP's `huggingface_adamw` derives from it, but transformers has removed it (seen with 4.57). The
    replacement is torch's AdamW, which adds epsilon at a different point and always corrects the bias.
    """
    import torch
    import transformers

    class AdamW(torch.optim.AdamW):
        def __init__(self, params: Any, correct_bias: bool = True, **kwargs: Any) -> None:
            if not correct_bias:
                raise ValueError("huggingface_adamw: expected correct_bias=True, got False")
            super().__init__(params, **kwargs)

    with mock.patch.object(transformers, "AdamW", getattr(transformers, "AdamW", AdamW), create=True):
        yield
