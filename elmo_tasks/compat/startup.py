"""
Start of `allennlp`: plugins, and the time that it takes to import them and to load data.
"""

import functools
import gc
import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = [
    "add_our_plugin",
    "import_quickly",
    "import_submodules_quickly",
    "load_instances_quickly",
    "pause_garbage_collection",
    "search_current_folder_last",
]

_OUR_PLUGIN = "elmo_tasks.plugin"

# Scripts of allennlp_models that register nothing. They import all of nltk, SciPy and py-rouge.
_SCRIPTS = frozenset(
    {
        "allennlp_models.rc.tools.narrativeqa",
        "allennlp_models.rc.tools.orb",
        "allennlp_models.rc.tools.orb_utils",
    }
)


def add_our_plugin(plugins: Module) -> None:
    """
    Symptom: AllenNLP knows our names only in a folder with a file `.allennlp_plugins`; and a plugin that cannot be
    imported is one line in the log, after which half of the names are missing. Every command, and `--help`, begins
    with log lines about plugins.

    Cause: `allennlp.common.plugins`, AllenNLP 2.10.1. `elmo_tasks.plugin` becomes a default plugin, and an error
    in the import of it or of allennlp_models is raised. Whoever calls `allennlp` in a folder with such a file, which
    may have come with a download, is told that its modules are imported.
    """
    plugins.DEFAULT_PLUGINS = (*plugins.DEFAULT_PLUGINS, _OUR_PLUGIN)
    if not {"ALLENNLP_DEBUG", "ALLENNLP_LOG_LEVEL"} & os.environ.keys():
        plugins.logger.setLevel(logging.WARNING)
    original = plugins.import_plugins

    @functools.wraps(original)
    def import_plugins() -> None:
        local = os.path.abspath(plugins.LOCAL_PLUGINS_FILENAME)
        if os.path.isfile(local):
            plugins.logger.warning("imports the modules that %s names", local)
        with pause_garbage_collection():
            original()
            # AllenNLP only logs an error. Modules that have been imported are not imported again.
            if importlib.util.find_spec("allennlp_models") is not None:
                plugins.import_module_and_submodules("allennlp_models")
            importlib.import_module(_OUR_PLUGIN)

    plugins.import_plugins = import_plugins


def search_current_folder_last(util: Module) -> None:
    """
    Symptom: `allennlp` in a folder with a file conllu.py, ftfy.py or word2number.py imports that file in place of the
    package.

    Cause: `push_python_path` puts the folder before all others; AllenNLP 2.10.1. It comes after them now.
    """

    @contextmanager
    def push_python_path(path: "str | os.PathLike[str]") -> Iterator[None]:
        folder = os.path.realpath(path)
        sys.path.append(folder)
        try:
            yield
        finally:
            # The last one: the same folder may have been on the path before.
            if folder in sys.path:
                del sys.path[len(sys.path) - 1 - sys.path[::-1].index(folder)]

    util.push_python_path = push_python_path


def import_submodules_quickly(util: Module) -> None:
    """
    Symptom: half a second of every start goes into looking for plugins, and a folder `data` or `models` in
    the current directory may be imported by mistake.

    Cause: `allennlp.common.util.import_module_and_submodules` clears Python's caches of its path and looks for
    the package checklist before each of 500 modules, and finds packages by the last part of their name.
    AllenNLP 2.10.1.
    """

    def import_module_and_submodules(package_name: str, exclude: set[str] | None = None) -> None:
        excluded = _SCRIPTS | (exclude or set())
        if importlib.util.find_spec("checklist") is None:
            excluded |= {"allennlp.confidence_checks.task_checklists"}
        importlib.invalidate_caches()
        with util.push_python_path("."):
            _import_module_and_submodules(package_name, excluded)

    util.import_module_and_submodules = import_module_and_submodules


def _import_module_and_submodules(name: str, excluded: frozenset[str]) -> None:
    if name in excluded:
        return
    module = importlib.import_module(name)
    for _, child, _ in pkgutil.iter_modules(list(getattr(module, "__path__", []))[:1]):
        # AllenNLP's rule: private modules and tests hold no plugins.
        if not child.startswith(("_", "test")):
            _import_module_and_submodules(f"{name}.{child}", excluded)


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
