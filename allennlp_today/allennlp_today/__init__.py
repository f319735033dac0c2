"""
Makes AllenNLP 2.10.1 and allennlp-models 2.10.1 work with current Python, torch, NumPy and
transformers.

torch calls `install` at the end of `import torch` (entry point `torch.backends`,
allennlp_today_hook.py), and AllenNLP imports torch before anything that needs a fix, also in worker
processes. `install` runs in every program in this environment that imports torch, so it does
nothing without AllenNLP, imports only the standard library, and replaces nothing before a module of
AllenNLP is imported. `ALLENNLP_TODAY_WITHOUT` names the fixes to switch off, separated by
commas.
"""

import importlib
import importlib.util
import warnings
from typing import Any

__all__ = ["install", "load_archive"]

# Importing them registers their guards and fixes. The guards of a module come before its fixes.
_MODULES = [
    "trust.loader",
    "trust.guards",
    "trust.options",
    "repairs.continuing",
    "repairs.deferred_imports",
    "repairs.errors",
    "repairs.hugging_face",
    "repairs.placeholders",
    "repairs.recovery",
    "repairs.startup",
    "repairs.third_party",
    "repairs.training",
    "repairs.training_checks",
]

_installed = False


def install() -> None:
    """
    Registers all guards and fixes by importing them, once. Called by torch, and when this module is
    imported.
    """
    global _installed
    if _installed or importlib.util.find_spec("allennlp") is None:
        return
    _installed = True
    for module in _MODULES:
        importlib.import_module(f"allennlp_today.{module}")

    from allennlp_today.import_hooks import REPAIRS, WITHOUT
    from allennlp_today.plugins import entry_points

    for entry in entry_points("allennlp_today.repairs"):
        try:
            entry.load()
        except ImportError as error:  # A checkout that was moved.
            message = f"{entry.name}: its repairs of AllenNLP cannot be imported: {error}"
            warnings.warn(message, RuntimeWarning, 2)
    names = {repair.name for repair in REPAIRS if not repair.is_guard}
    if unknown := WITHOUT - names:
        expected = f"expected names among {sorted(names)}, got {sorted(unknown)}"
        message = f"ALLENNLP_TODAY_WITHOUT: {expected}; guards cannot be switched off"
        warnings.warn(message, RuntimeWarning, 2)


def __getattr__(name: str) -> Any:
    if name == "load_archive":
        return importlib.import_module("allennlp_today.trust").load_archive
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# With TORCH_DEVICE_BACKEND_AUTOLOAD=0, `import allennlp_today` before AllenNLP is enough.
install()
