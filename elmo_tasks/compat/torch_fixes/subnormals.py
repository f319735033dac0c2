"""Numbers below the smallest normal one, which x86 processors compute with slowly."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = ["flush_subnormals_in_evaluation", "flush_subnormals_in_training", "flushed_subnormals"]


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
