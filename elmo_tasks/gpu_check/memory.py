"""Memory: none is lost over many batches, a batch that does not fit is divided, and two processes share a GPU."""

import json
import logging
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from elmo_tasks.bilm.bilm import logger as logger_of_bilm
from elmo_tasks.bilm.lstm.graph_pool import pool_of
from elmo_tasks.gpu_check.batches import (
    largest_of,
    layers_of,
    make_bilm,
    plain_path,
    ragged,
    relative_difference,
    sentences,
)
from elmo_tasks.gpu_check.part import NotApplicable, Numbers, Part, PartFailed, Setting
from elmo_tasks.gpu_check.second_process import shape_of

__all__ = ["memory_parts"]

# What a pass over batches of the same shapes may add to that before it.
_MOST_GROWTH_IN_MIB = 64.0
# What graphs may take with the temporary results that they share.
_MOST_FOR_GRAPHS_IN_MIB = 2048.0
_SECONDS_OF_SECOND_PROCESS = 150
_NUMBERS_OF_SENTENCES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 700)


def memory_parts() -> list[Part]:
    """All parts on memory."""
    return [
        Part("memory over many batches", _check_growth),
        Part("memory of graphs", _check_graphs),
        Part("too little memory", _check_too_little),
        Part("two processes", _check_two_processes),
    ]


def _check_growth(setting: Setting) -> Numbers:
    """Two passes over batches of random shapes: the second one needs no more than the first."""
    model, draw = make_bilm(setting.sizes[0]).to(setting.device), random.Random(0)
    n_batches = 100 if setting.is_cuda and not setting.is_quick else 30 if setting.is_cuda else 5
    largest = (9, 9) if setting.is_tiny else (80, 60)
    shapes = [(draw.randint(1, largest[0]), draw.randint(1, largest[1])) for _ in range(n_batches)]
    used = []
    for _ in range(2):
        for seed, shape in enumerate(shapes):
            layers_of(model, ragged(*shape, seed))
        used.append(_used_mib(setting))
    numbers = {"batches": 2 * n_batches, "MiB after the first half": used[0], "MiB at the end": used[1]}
    if used[1] > used[0] + _MOST_GROWTH_IN_MIB:
        raise PartFailed(f"the second half of {2 * n_batches} batches has taken {used[1] - used[0]:.0f} MiB", numbers)
    return numbers


def _used_mib(setting: Setting) -> float:
    if setting.is_cuda:
        torch.cuda.synchronize(setting.device)
        return torch.cuda.memory_allocated(setting.device) / 2**20
    status = Path("/proc/self/status")
    if not status.exists():
        raise NotApplicable("this system does not tell the memory of a process")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS")) / 1024


def _check_graphs(setting: Setting) -> Numbers:
    """Graphs of all numbers of rows at the largest size, of two biLMs, which are more than the pool keeps."""
    setting.require_cuda("graphs")
    size, pool = setting.sizes[-1], pool_of(setting.device)
    models = [make_bilm(size, seed=seed).to(setting.device) for seed in range(1 if setting.is_quick else 2)]
    for model in models:
        with plain_path():  # Its prepared weights are no part of the graphs.
            layers_of(model, ragged(2, 4))
    pool.clear()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(setting.device)
    for model in models:
        for n_sentences in (1, 2) if setting.is_tiny else _NUMBERS_OF_SENTENCES:
            layers_of(model, sentences([9] * n_sentences))
    torch.cuda.synchronize(setting.device)
    torch.cuda.empty_cache()
    reserved = (torch.cuda.memory_reserved(setting.device) - before) / 2**20
    kept = pool.size()
    numbers = {"graphs": kept.n_graphs, "MiB of buffers": kept.n_bytes / 2**20, "MiB in all": reserved}
    if reserved > _MOST_FOR_GRAPHS_IN_MIB:
        raise PartFailed(f"graphs take {reserved:.0f} MiB, and may {_MOST_FOR_GRAPHS_IN_MIB:.0f}", numbers)
    return numbers


def _check_too_little(setting: Setting) -> Numbers:
    """A batch with less memory than it takes in one part."""
    setting.require_cuda("limits of the memory")
    batch = ragged(*((9, 9) if setting.is_tiny else (256, 60)))
    with plain_path():
        model = make_bilm(setting.sizes[0]).to(setting.device)
        model.max_tokens_per_batch = None
        layers_of(model, ragged(2, 4))
        before = torch.cuda.memory_allocated(setting.device)
        torch.cuda.reset_peak_memory_stats(setting.device)
        expected = layers_of(model, batch)
        peak = torch.cuda.max_memory_allocated(setting.device)
        pool_of(setting.device).clear()
        torch.cuda.empty_cache()
        kept = max(before, torch.cuda.memory_reserved(setting.device))
        total = torch.cuda.get_device_properties(setting.device).total_memory
        # Half of what the batch takes, and some room for blocks that are only used in part.
        limit = (kept + (peak - before) // 2 + 2**25) / total
        with _records_of(logger_of_bilm) as records:
            torch.cuda.set_per_process_memory_fraction(min(1.0, limit), setting.device)
            try:
                found = layers_of(model, batch)
            finally:
                torch.cuda.set_per_process_memory_fraction(1.0, setting.device)
    difference = relative_difference(found, expected)
    numbers: Numbers = {
        "MiB in one part": (peak - before) / 2**20,
        "words in a part": model.max_tokens_per_batch,
        "times divided": len(records),
        "largest difference": difference,
    }
    if not difference <= 1e-4:
        raise PartFailed(f"the layers of a divided batch differ by {difference:.1e}", numbers)
    return numbers


class _Keeper(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def _records_of(logger: logging.Logger) -> Iterator[list[logging.LogRecord]]:
    """The records of a logger, which are shown nowhere else: the part that causes them reports them."""
    keeper = _Keeper()
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(keeper)
    try:
        yield keeper.records
    finally:
        logger.propagate = propagates
        logger.removeHandler(keeper)


def _check_two_processes(setting: Setting) -> Numbers:
    """This process and another one compute the same batches at the same time."""
    if setting.is_quick and setting.sizes[0] != "tiny":
        raise NotApplicable("--quick omits it")
    size = setting.sizes[0]
    command = [sys.executable, "-m", "elmo_tasks.gpu_check.second_process", str(setting.device), size]
    model = make_bilm(size).to(setting.device)
    batches = [ragged(*shape_of(size, seed), seed) for seed in range(4)]
    expected = [layers_of(model, batch) for batch in batches]
    differences, n_rounds = [0.0], 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            while process.poll() is None and n_rounds < 100_000:
                for batch, layers in zip(batches, expected, strict=True):
                    differences.append(relative_difference(layers_of(model, batch), layers))
                n_rounds += 1
            output, errors = process.communicate(timeout=_SECONDS_OF_SECOND_PROCESS)
        finally:
            process.kill()
    numbers: Numbers = {"rounds here": n_rounds, "largest difference here": largest_of(differences)}
    if process.returncode:
        last = errors.strip().splitlines()[-1:] or ["without a message"]
        raise PartFailed(f"the second process ended with status {process.returncode}: {last[0]}", numbers)
    # The sum of all layers of each batch.
    for name, theirs, layers in zip("abcd", json.loads(output), expected, strict=True):
        difference = abs(theirs - float(layers.double().sum())) / max(1.0, float(layers.double().abs().sum()))
        numbers[f"difference there, batch {name}"] = difference
        differences.append(difference)
    largest = largest_of(differences)
    if not largest <= 1e-4:
        raise PartFailed(f"layers differ by {largest:.1e} while two processes compute", numbers)
    return numbers
