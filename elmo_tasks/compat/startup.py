"""The start of `allennlp`, and its plugins."""

import gc
import importlib
import importlib.util
import logging
import pkgutil
import sys
import tarfile
from collections.abc import Callable
from types import ModuleType

from elmo_tasks.compat.import_hooks import Module, after_import, replaces

INCLUDED_PACKAGES: set[str] = set()
"""The packages that AllenNLP has imported for plugins and `--include-package`."""

_OUR_PLUGIN = "elmo_tasks.plugin"
# They register nothing, import all of nltk, SciPy and py-rouge, and download nltk data.
_SCRIPTS = {f"allennlp_models.rc.tools.{name}" for name in ("narrativeqa", "orb", "orb_utils")}


@after_import("allennlp.common.plugins")
def add_our_plugin(plugins: Module) -> None:
    """
    Symptom: AllenNLP finds our names only in a folder with a file `.allennlp_plugins`. If a plugin cannot be
    imported, a line is logged and its names are missing. Every command starts with log lines about plugins.
    Cause: `elmo_tasks.plugin` is not a default plugin, and `import_plugins` catches errors.
    """
    plugins.logger.setLevel(logging.WARNING)
    plugins.DEFAULT_PLUGINS = (*plugins.DEFAULT_PLUGINS, _OUR_PLUGIN)

    @replaces(plugins, "import_plugins")
    def import_plugins(original: Callable[[], None]) -> None:
        original()
        # Raises the errors that AllenNLP only logs. Modules that are already imported are not imported again.
        plugins.import_module_and_submodules("allennlp_models")
        importlib.import_module(_OUR_PLUGIN)


@after_import("allennlp.commands", "allennlp.commands.train")
def settle_commands(module: Module) -> None:
    """
    Symptom: commands and trainings load data in a third more time, and slow down on x86 processors when
    numbers fall below 1.2e-38. Archives that `cached_path` opens may write files outside their folder.
    Cause: Python's thresholds for garbage collection, arithmetic with denormal numbers, and `tarfile` before
    Python 3.14. All three are settings of the process, so a program that only imports AllenNLP keeps its own.
    """

    # Each worker of a distributed training calls the second.
    @replaces(module, "main" if module.__name__ == "allennlp.commands" else "_train_worker")
    def run(original: Callable[..., object], *args: object, **kwargs: object) -> object:
        import torch

        # Data sets are millions of mostly long-lived objects.
        gc.set_threshold(100_000, 50, 50)
        torch.set_flush_denormal(True)
        tarfile.TarFile.extraction_filter = staticmethod(tarfile.data_filter)
        return original(*args, **kwargs)


@after_import("allennlp.commands")
def bring_back_elmo_embedder(commands: Module) -> None:
    """
    Symptom: flair, SeqVec and bio_embeddings raise `No module named 'allennlp.commands.elmo'`.
    Cause: AllenNLP 1.0 removed the module; its class is now in this package.
    """

    def attribute(name: str) -> object:
        return getattr(importlib.import_module("elmo_tasks.vectors.elmo_embedder"), name)

    module = sys.modules["allennlp.commands.elmo"] = commands.elmo = ModuleType("allennlp.commands.elmo")
    module.__dict__["__getattr__"] = attribute


@after_import("allennlp.common.util")
def import_submodules_quickly(util: Module) -> None:
    """
    Symptom: every start spends over a second looking for modules. `Plugin allennlp_models could not be loaded`, and of
    its 47 models only 31 are registered; with py-rouge, every start tries to reach the network.
    Cause: before each of 500 modules, `import_module_and_submodules` clears Python's import caches, looks for
    the package checklist, and walks into packages that it then skips. One of them downloads nltk data.
    """

    @replaces(util, "import_module_and_submodules")
    def import_quickly(original: object, package_name: str, exclude: set[str] | None = None) -> None:
        INCLUDED_PACKAGES.add(package_name.split(".")[0])
        excluded = _SCRIPTS | (exclude or set())
        if importlib.util.find_spec("checklist") is None:
            excluded.add("allennlp.confidence_checks.task_checklists")
        importlib.invalidate_caches()
        with util.push_python_path("."):
            _import_module_and_submodules(package_name, excluded)


def _import_module_and_submodules(name: str, excluded: set[str]) -> None:
    if name in excluded:
        return
    module = importlib.import_module(name)
    for _, child, _ in pkgutil.iter_modules(list(getattr(module, "__path__", []))[:1]):
        # AllenNLP's rule: private modules and tests contain no plugins.
        if not child.startswith(("_", "test")):
            _import_module_and_submodules(f"{name}.{child}", excluded)
