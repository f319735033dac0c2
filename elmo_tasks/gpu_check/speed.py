"""Speed: layers of sentences, next to a biLM of torch's own modules in the same process."""

import copy
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.bilm.lstm.precision import supports_bf16, tf32_set_to
from elmo_tasks.gpu_check.batches import Precision, make_bilm, sentences
from elmo_tasks.gpu_check.part import SIZES, Numbers, Part, Setting
from elmo_tasks.gpu_check.torch_stack import TorchStack
from elmo_tasks.printable import one_line

__all__ = ["speed_parts"]

_N_ROUNDS = 5
# A round takes so long at least.
_SECONDS_OF_ROUND = 0.1


def speed_parts(setting: Setting) -> list[Part]:
    """A part for each size and number of sentences."""
    batch_sizes = (1, 64) if setting.is_quick or not setting.is_cuda else (1, 64, 256)
    return [
        Part(f"speed, {size}, batches of {batch_size}", partial(_measure, size=size, batch_size=batch_size))
        for size in setting.sizes
        for batch_size in batch_sizes
    ]


def _precisions(setting: Setting) -> list[Precision]:
    found: list[Precision] = ["float32"]
    if setting.is_cuda and torch.cuda.get_device_capability(setting.device) >= (8, 0):
        found.append("tf32")
    if supports_bf16(setting.device):
        found.append("bf16")
    return found


@torch.no_grad()
def _measure(setting: Setting, size: str, batch_size: int) -> Numbers:
    # 28 words on average.
    words = sentences(
        [16 + 24 * index // max(1, batch_size - 1) for index in range(batch_size)] if batch_size > 1 else [28]
    )
    lengths = torch.tensor([len(sentence) for sentence in words])
    character_ids = sentences_to_character_ids(words).to(setting.device)
    numbers: Numbers = {"words": int(lengths.sum())}
    stack = TorchStack(SIZES[size]).to(setting.device)
    for precision in _precisions(setting):
        bilm = make_bilm(size, precision=precision).to(setting.device)
        ours = _tokens_per_second(setting, numbers["words"], partial(bilm, character_ids))
        theirs = _of_stack(setting, precision, stack, character_ids, lengths)
        numbers |= {f"{precision}, tokens/s": round(ours), f"{precision}, torch's own, tokens/s": theirs}
        del bilm
    return numbers


def _of_stack(
    setting: Setting, precision: Precision, stack: TorchStack, character_ids: torch.Tensor, lengths: torch.Tensor
) -> float | str:
    """The speed of torch's own modules; the error if they cannot compute in this precision here."""
    try:
        if precision == "bf16":
            stack = copy.deepcopy(stack).bfloat16()
        with tf32_set_to(precision == "tf32"), _cudnn_tf32(precision == "tf32"):
            return round(_tokens_per_second(setting, int(lengths.sum()), partial(stack, character_ids, lengths)))
    except RuntimeError as error:
        return f"not measured: {one_line(error)}"


@contextmanager
def _cudnn_tf32(rounds: bool) -> Iterator[None]:
    """Sets whether cuDNN rounds the factors of float32 products to TF32, which is its default."""
    cudnn: Any = torch.backends.cudnn
    # As for products, torch has an old and a new name; the new one is for convolutions and LSTMs apart.
    is_new = hasattr(cudnn, "rnn")
    places = [(cudnn.conv, "fp32_precision"), (cudnn.rnn, "fp32_precision")] if is_new else [(cudnn, "allow_tf32")]
    before = [getattr(*place) for place in places]
    for place in places:
        setattr(*place, ("tf32" if rounds else "ieee") if is_new else rounds)
    try:
        yield
    finally:
        for place, value in zip(places, before, strict=True):
            setattr(*place, value)


def _tokens_per_second(setting: Setting, n_words: int, run: Callable[[], Any]) -> float:
    """The median of some rounds."""
    run()
    once = _seconds(setting, run, 1)
    n_times = max(1, min(50, round(_SECONDS_OF_ROUND / max(once, 1e-6))))
    # A CPU takes its time.
    n_rounds = _N_ROUNDS if once < 1.0 else 1
    return n_words * n_times / statistics.median(_seconds(setting, run, n_times) for _ in range(n_rounds))


def _seconds(setting: Setting, run: Callable[[], Any], n_times: int) -> float:
    setting.synchronize()
    start = time.perf_counter()
    for _ in range(n_times):
        run()
    setting.synchronize()
    return time.perf_counter() - start
