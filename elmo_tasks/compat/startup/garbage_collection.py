"""Python's garbage collector, which is paused while nothing becomes garbage."""

import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = ["import_quickly", "load_instances_quickly", "pause_garbage_collection"]


def load_instances_quickly(multiprocess_data_loader: Module) -> None:
    """
    Symptom: a third of the time that it takes to load the 18,000 pairs of a small SNLI is spent in the garbage
    collector.

    Cause: as that of `pause_garbage_collection`, in a `MultiProcessDataLoader` that keeps all instances. One with
    `max_instances_in_memory` drops them again, and stays as it is; so does one with workers, which would be forked
    without a collector.
    """
    loader = multiprocess_data_loader.MultiProcessDataLoader
    iter_instances, index_with = loader.iter_instances, loader.index_with

    @functools.wraps(iter_instances)
    def load_and_iter_instances(self: Any) -> Iterator[Any]:
        if self.max_instances_in_memory is not None or self.num_workers or self._instances:
            return iter_instances(self)
        with pause_garbage_collection():
            return iter(list(iter_instances(self)))

    @functools.wraps(index_with)
    def index_all_with(self: Any, vocab: Any) -> None:
        with pause_garbage_collection():
            index_with(self, vocab)

    loader.iter_instances, loader.index_with = load_and_iter_instances, index_all_with


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """
    Symptom: about a tenth of the time of an import is spent in the garbage collector.

    Cause: importing makes some million objects, nearly all of which stay, and the collector traverses them again and
    again. Measured with Python 3.11.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def import_quickly() -> Iterator[None]:
    """
    Symptom: where AllenNLP was installed without its requirements, `No module named 'cached_path'` and the like; and
    that of `pause_garbage_collection`.

    Cause: AllenNLP is installed with `--no-deps`, because its own pins cannot be met; the packages that it imports are
    those of the extra `allennlp` of elmo_tasks. The error says so.
    """
    try:
        with pause_garbage_collection():
            yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("allennlp", "allennlp_models", "elmo_tasks"):
            error.add_note(
                "AllenNLP needs packages that are not installed. Remedy: `pip install 'elmo_tasks[allennlp]'`."
            )
        raise
