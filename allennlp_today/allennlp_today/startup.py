"""The start of `allennlp`, and its plugins."""

import gc
import importlib
import importlib.util
import logging
import pkgutil
import tarfile
from collections.abc import Callable

from allennlp_today.entry_points import entry_points
from allennlp_today.import_hooks import Module, after_import, replaces

# They register nothing, import all of nltk, SciPy and py-rouge, and download nltk data.
_SCRIPTS = {f"allennlp_models.rc.tools.{name}" for name in ("narrativeqa", "orb", "orb_utils")}


@after_import("allennlp.common.plugins")
def find_plugins_by_entry_points(plugins: Module) -> None:
    """
    Symptom: AllenNLP finds plugins only in a folder with a file `.allennlp_plugins`. If a plugin cannot be
    imported, a line is logged and its names are missing. Every command starts with log lines about plugins.
    Cause: `import_plugins` does not look for entry points, and catches errors.
    """
    plugins.logger.setLevel(logging.WARNING)

    @replaces(plugins, "import_plugins")
    def import_plugins(original: Callable[[], None]) -> None:
        original()
        # Raises the errors that AllenNLP only logs. Modules that are already imported are not imported again.
        if importlib.util.find_spec("allennlp_models"):
            plugins.import_module_and_submodules("allennlp_models")
        for entry in entry_points("allennlp.plugins"):
            entry.load()
        for name in plugins.discover_plugins():
            try:
                importlib.import_module(name)
            except ImportError as error:
                raise ImportError(f"the plugin {name} cannot be imported: {error}") from error


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
        # Python 3.11.2, Debian 12's, has no filters.
        if hasattr(tarfile, "data_filter"):
            tarfile.TarFile.extraction_filter = staticmethod(tarfile.data_filter)
        return original(*args, **kwargs)


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
        excluded = _SCRIPTS | (exclude or set())
        if importlib.util.find_spec("checklist") is None:
            excluded.add("allennlp.confidence_checks.task_checklists")
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
