"""The start of `allennlp`, and its plugins."""

import gc
import logging
import tarfile
from collections.abc import Callable
from typing import Any

from allennlp_today.current_folder import search_current_folder
from allennlp_today.import_hooks import Module, after_import, replaces
from allennlp_today.plugins import import_installed_plugins, import_package, import_plugin


@after_import("allennlp.common.plugins")
def find_plugins_by_entry_points(plugins: Module) -> None:
    """
    Symptom: AllenNLP finds plugins only in a folder with a file `.allennlp_plugins`. If a plugin
    cannot be imported, a line is logged and its names are missing. Every command starts with log
    lines about plugins. A file in the current folder replaces an installed package of the same
    name.
    Cause: `import_plugins` does not look for entry points, catches errors, and puts the current
    folder in front of the path. Now this folder is searched last, and only for a plugin that is not
    installed.
    """
    plugins.logger.setLevel(logging.WARNING)

    @replaces(plugins, "import_plugins")
    def import_plugins(original: Callable[[], None]) -> None:
        import_installed_plugins()
        # A list, because the generator changes the path until its end.
        for name in list(plugins.discover_plugins()):
            import_plugin(name)


@after_import("allennlp.common.registrable")
def find_classes_in_the_current_folder(registrable: Module) -> None:
    """
    Symptom: a config that names a class of the current folder, such as `my_project.MyModel`, cannot
    be trained.
    Cause: `import_plugins` no longer adds this folder to the path. Now the module
    that the config names is found there, and what it imports from there, but nothing else.
    """

    @replaces(registrable.Registrable, "resolve_class_name")
    def resolve_class_name(original: Callable[..., Any], cls: Any, name: str) -> Any:
        if "." in name and name not in registrable.Registrable._registry[cls]:
            search_current_folder(name)
        return original(cls, name)


@after_import("allennlp.commands", "allennlp.commands.train")
def settle_commands(module: Module) -> None:
    """
    Symptom: commands and trainings take a third longer to load data, and slow down on x86
    processors when numbers fall below 1.2e-38. Archives that `cached_path` opens may write files
    outside their folder.
    Cause: Python's thresholds for garbage collection, arithmetic with denormal numbers, and
    `tarfile` before Python 3.14. All three are settings of the process, so a program that only
    imports AllenNLP keeps its own.
    """
    function_name = "main"
    if module.__name__ == "allennlp.commands.train":
        # Each worker of a distributed training calls it.
        function_name = "_train_worker"

    @replaces(module, function_name)
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
    Symptom: every start spends over a second looking for modules.
    `Plugin allennlp_models could not be loaded`, and of its 47 models only 31 are registered; with
    py-rouge, every start tries to reach the network. Cause: before each of 500 modules,
    `import_module_and_submodules` clears Python's import caches, looks for the package checklist,
    and walks into packages that it then skips. One of them downloads nltk data.
    """

    @replaces(util, "import_module_and_submodules")
    def import_quickly(
        original: object,
        package_name: str,
        exclude: set[str] | None = None,
    ) -> None:
        search_current_folder(package_name)
        import_package(package_name, exclude)
