"""
Makes AllenNLP 2.10.1 and allennlp-models 2.10.1 work with current Python, torch, NumPy and transformers.

torch calls `install` at the end of `import torch` (entry point `torch.backends`, allennlp_today_hook.py), and AllenNLP
imports torch before anything that needs a fix, also in worker processes. `install` runs in every program in this
environment that imports torch, so it does nothing without AllenNLP, imports only the standard library, and replaces
nothing before a module of AllenNLP is imported. `ALLENNLP_TODAY_WITHOUT` lists fixes to switch off, with commas.
"""

import importlib
import importlib.util
import warnings
from typing import Any

__all__ = ["install", "load_archive"]

_installed = False


def install() -> None:
    """Registers all guards and fixes by importing them, once. Called by torch, and when this module is imported."""
    global _installed
    if _installed or importlib.util.find_spec("allennlp") is None:
        return
    _installed = True
    # The guards, in `archives`, are first.
    from allennlp_today import (  # noqa: F401
        archives,
        continuing,
        deferred_imports,
        errors,
        hugging_face,
        placeholders,
        recovery,
        startup,
        third_party,
        training,
        training_checks,
    )
    from allennlp_today.entry_points import entry_points
    from allennlp_today.import_hooks import FIXES, WITHOUT

    for entry in entry_points("allennlp_today.repairs"):
        try:
            entry.load()
        except ImportError as error:  # A checkout that was moved.
            warnings.warn(f"{entry.name}: its repairs of AllenNLP cannot be imported: {error}", RuntimeWarning, 2)
    names = {fix.__name__ for fix in FIXES}
    if unknown := WITHOUT - names:
        message = f"expected names among {sorted(names)}, got {sorted(unknown)}; guards cannot be switched off"
        warnings.warn(f"ALLENNLP_TODAY_WITHOUT: {message}", RuntimeWarning, 2)


def __getattr__(name: str) -> Any:
    if name == "load_archive":
        return importlib.import_module("allennlp_today.archives").load_archive
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# With TORCH_DEVICE_BACKEND_AUTOLOAD=0, `import allennlp_today` before AllenNLP is enough.
install()
