"""Recorded graphs and Triton's kernels: that they are used, and that nothing a program may do makes them wrong."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from elmo_tasks.bilm.lstm import cuda_graphs, fast_cell, graph_choice
from elmo_tasks.bilm.lstm.graph_pool import pool_of
from elmo_tasks.bilm.lstm.precision import supports_bf16
from elmo_tasks.bilm.lstm.recurrence import run_lstms
from elmo_tasks.gpu_check.batches import largest_of, layers_of, make_bilm, plain_path, ragged, relative_difference
from elmo_tasks.gpu_check.part import NotApplicable, Numbers, Part, PartFailed, Setting

__all__ = ["graph_parts"]

_LARGEST_DIFFERENCE = 1e-4


def graph_parts() -> list[Part]:
    """All parts on graphs and kernels."""
    return [
        Part("Triton's kernels", _check_triton),
        Part("graphs: recorded and replayed", _check_recorded),
        Part("graphs: other shapes", _check_shapes),
        Part("graphs: weights changed", _check_weights),
        Part("graphs: inference mode", _check_inference_mode),
        Part("graphs: two threads", _check_threads),
        Part("graphs: two GPUs", _check_second_gpu),
        Part("graphs: a recording that fails", _check_failure),
    ]


def _dtypes(device: torch.device) -> list[torch.dtype]:
    return [torch.float32, *([torch.bfloat16] if supports_bf16(device) else [])]


def _check_triton(setting: Setting) -> Numbers:
    setting.require_cuda("Triton's kernels")
    if not fast_cell.has_triton():
        raise NotApplicable("Triton is not installed: torch's kernels compute the step of the LSTMs")
    if not fast_cell.is_switched_on():
        raise NotApplicable(f"{fast_cell.PLAIN_PATH} is 0")
    for dtype in _dtypes(setting.device):
        with torch.no_grad():
            if (difference := fast_cell.first_difference(setting.device, dtype)) is not None:
                raise PartFailed(f"{dtype}: {difference}")
    return {}


def _require_graphs(setting: Setting) -> None:
    setting.require_cuda("graphs")
    if not fast_cell.is_switched_on():
        raise NotApplicable(f"{fast_cell.PLAIN_PATH} is 0")


def _check_recorded(setting: Setting) -> Numbers:
    _require_graphs(setting)
    for dtype in _dtypes(setting.device):
        if (difference := graph_choice.first_difference(setting.device, dtype)) is not None:
            raise PartFailed(f"{dtype}: {difference}")
    size, pool = setting.sizes[0], pool_of(setting.device)
    bilm = make_bilm(size).to(setting.device)
    batch = ragged(8 if setting.is_tiny else 32, 20 if setting.is_tiny else 40)
    layers_of(bilm, ragged(2, 4))  # Libraries are loaded and kernels compiled.
    # Those of the test above would go whenever their memory is collected.
    pool.clear()
    start = time.perf_counter()
    first = layers_of(bilm, batch)
    recording, start = time.perf_counter() - start, time.perf_counter()
    again = layers_of(bilm, batch)
    replaying, after = time.perf_counter() - start, pool.size()
    numbers = {
        "recorded": after.n_graphs,
        "milliseconds for each": 1000 * max(0.0, recording - replaying) / max(1, after.n_graphs),
        "MiB of buffers": after.n_bytes / 2**20,
    }
    if not after.n_graphs:
        raise PartFailed("no graph was recorded: see the warning above", numbers)
    _compare(again, first, "a replay and the recording", numbers)
    return numbers


def _check_shapes(setting: Setting) -> Numbers:
    _require_graphs(setting)
    bilm, draw = make_bilm(setting.sizes[0]).to(setting.device), random.Random(0)
    largest = 0.0
    n_sentences, longest = (
        ((1, 2, 3, 9, 31, 70, 200), (1, 7, 8, 9, 30, 60)) if not setting.is_tiny else ((1, 3, 9), (1, 17))
    )
    for seed in range(3 if setting.is_tiny else 10 if setting.is_quick else 30):
        batch = ragged(draw.choice(n_sentences), draw.choice(longest), seed)
        found = layers_of(bilm, batch)
        with plain_path():
            expected = layers_of(bilm, batch)
        largest = max(largest, _compare(found, expected, f"graphs and the plain path, batch {seed}"))
    return {"largest difference": largest, "graphs": pool_of(setting.device).size().n_graphs}


def _check_weights(setting: Setting) -> Numbers:
    _require_graphs(setting)
    size, batch = setting.sizes[0], ragged(20, 20)
    bilm, other = (make_bilm(size, seed=seed).to(setting.device) for seed in (0, 1))
    layers = layers_of(bilm, batch)

    def scaled() -> None:
        for parameter in bilm.parameters():
            parameter.mul_(0.9)

    def loaded() -> None:
        bilm.load_state_dict(other.state_dict())

    def moved() -> None:
        bilm.cpu().to(setting.device)

    numbers: Numbers = {}
    for change in (scaled, loaded, moved):
        change()
        found = layers_of(bilm, batch)
        with plain_path():
            expected = layers_of(bilm, batch)
        name = f"weights {change.__name__}"
        if change is not moved and torch.equal(found, layers):
            raise PartFailed(f"{name}: the layers are still those of the old weights", numbers)
        numbers[name] = _compare(found, expected, name, numbers)
        layers = found
    return numbers


def _check_inference_mode(setting: Setting) -> Numbers:
    _require_graphs(setting)
    bilm = make_bilm(setting.sizes[0]).to(setting.device)
    numbers: Numbers = {}
    batches = [ragged(5, 20), ragged(12, 9, seed=1)]
    with plain_path():
        expected = [layers_of(bilm, batch) for batch in batches]
    for index, mode in enumerate((True, False, True)):
        for batch, layers in zip(batches, expected, strict=True):
            with torch.inference_mode(mode):
                numbers[f"round {index}"] = _compare(layers_of(bilm, batch), layers, f"inference mode {mode}", numbers)
    return numbers


def _check_threads(setting: Setting) -> Numbers:
    _require_graphs(setting)
    bilm = make_bilm(setting.sizes[0]).to(setting.device)
    batches = [ragged(1 + 7 * seed, 25, seed) for seed in range(2 if setting.is_tiny else 8)]
    with plain_path():
        expected = [layers_of(bilm, batch) for batch in batches]
    differences: list[float] = []
    errors: list[str] = []

    def compute(stream: "torch.cuda.Stream | None", order: int) -> None:
        try:
            # The first thread has the stream of the device, the second one of its own.
            with torch.cuda.stream(stream):
                for _ in range(3 if setting.is_quick else 10):
                    for batch, layers in list(zip(batches, expected, strict=True))[::order]:
                        differences.append(relative_difference(layers_of(bilm, batch), layers))
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")

    streams = (None, torch.cuda.Stream(setting.device))
    threads = [threading.Thread(target=compute, args=arguments) for arguments in zip(streams, (1, -1), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise PartFailed(f"a thread raised {errors[0]}")
    return {"largest difference": _at_most(largest_of(differences), "two threads and one")}


def _check_second_gpu(setting: Setting) -> Numbers:
    _require_graphs(setting)
    if torch.cuda.device_count() < 2:
        raise NotApplicable("there is one GPU")
    bilm, batch = make_bilm(setting.sizes[0]), ragged(20, 20)
    expected = layers_of(bilm, batch)
    numbers: Numbers = {}
    for index in range(2):
        device = torch.device("cuda", index)
        with torch.cuda.device(1 - index):
            found = layers_of(bilm.to(device), batch)
        numbers[str(device)] = _compare(found, expected, f"{device}, while the other one is current,", numbers)
    return numbers


def _check_failure(setting: Setting) -> Numbers:
    """A driver that refuses to record: the first recording waits for the GPU, which no graph can hold."""
    _require_graphs(setting)
    bilm, batch = make_bilm(setting.sizes[0]).to(setting.device), ragged(7, 12)
    with plain_path():
        expected = layers_of(bilm, batch)
    with _fresh_choice(), patch.object(cuda_graphs, "run_lstms", _waiting(run_lstms)):
        # The test passes by itself: the failure comes with a batch.
        graph_choice._VERDICTS[setting.device, torch.float32] = True
        found = layers_of(bilm, batch)
        if setting.device not in graph_choice._OFF:
            raise PartFailed("a recording that must fail did not")
    torch.rand(4, device=setting.device)  # Random numbers work.
    with torch.no_grad():
        torch.nn.functional.dropout(torch.ones(4, device=setting.device), 0.5)
    numbers = {"after the failure": _compare(found, expected, "after the failure, and before")}
    numbers["graphs again"] = _compare(layers_of(bilm, batch), expected, "graphs after the failure", numbers)
    return numbers


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, **keywords: Any) -> Any:
        torch.cuda.synchronize()
        return function(*arguments, **keywords)

    return run


@contextmanager
def _fresh_choice() -> Iterator[None]:
    """As in a new process, and without its warning; afterwards as before."""
    warned: dict[str, object] = {"graphs": object()}
    with (
        patch.object(graph_choice, "_VERDICTS", {}),
        patch.object(graph_choice, "_OFF", set()),
        patch.object(graph_choice, "_WARNED", warned),
    ):
        yield


def _compare(found: torch.Tensor, expected: torch.Tensor, what: str, numbers: Numbers | None = None) -> float:
    return _at_most(relative_difference(found, expected), what, numbers)


def _at_most(difference: float, what: str, numbers: Numbers | None = None) -> float:
    # Also where it is not a number.
    if not difference <= _LARGEST_DIFFERENCE:
        raise PartFailed(f"{what} differ by {difference:.1e}, and may by {_LARGEST_DIFFERENCE:.0e}", numbers)
    return difference
