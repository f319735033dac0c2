"""Modules that AllenNLP had before 1.0 and this package has now, under the names that they had there."""

import importlib
import sys
from collections.abc import Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from elmo_tasks.compat.import_hooks import Module

__all__ = ["FORMER_MODULES", "find_elmo_as_attribute", "register"]

FORMER_MODULES: Mapping[str, str] = {"allennlp.commands.elmo": "elmo_tasks.vectors.elmo_embedder"}
"""The module of AllenNLP, and the one that has its names now."""


class _FormerModules(MetaPathFinder, Loader):
    """
    Finds the modules of the table. It is asked last, so that a module of AllenNLP's own takes precedence; and only once
    the package that the module is in has been imported, so that nothing is found where AllenNLP is not installed.
    """

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in FORMER_MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        ours = importlib.import_module(FORMER_MODULES[module.__name__])
        module.__doc__ = ours.__doc__
        vars(module).update({name: getattr(ours, name) for name in ours.__all__}, __all__=ours.__all__)


def register() -> None:
    """Lets the modules of the table be imported: called by `elmo_tasks.compat.install`."""
    sys.meta_path.append(_FormerModules())


def find_elmo_as_attribute(commands: Module) -> None:
    """
    Symptom: `import allennlp.commands` is not enough for `allennlp.commands.elmo.ElmoEmbedder`, on which old programs
    rely.

    Cause: `allennlp.commands` imported all its modules, and has no `elmo` since 1.0. It is imported at the first use.
    """

    def __getattr__(name: str) -> ModuleType:
        if name == "elmo":
            return importlib.import_module("allennlp.commands.elmo")
        raise AttributeError(f"module {commands.__name__!r} has no attribute {name!r}")

    commands.__getattr__ = __getattr__
