"""Plugins of AllenNLP: which are imported, from which folders, and how soon."""

import functools
import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.compat.startup.garbage_collection import pause_garbage_collection

__all__ = ["add_our_plugin", "import_submodules_quickly", "search_current_folder_last"]

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
