"""
AllenNLP 2.10.1 and allennlp-models 2.10.1 on the Python, torch, spaCy, NumPy and transformers of today.

torch calls `install` at the end of `import torch` (entry point `torch.backends` in setup.cfg), and AllenNLP imports
torch before anything that needs a fix; so `allennlp`, `python -m allennlp`, spawned data loader workers and distributed
workers are all covered, and users need not import this package.

`install` runs for everyone who imports torch in this environment, most of whom do not use AllenNLP. So it imports the
standard library only (as `elmo_tasks.files` does), replaces nothing before a module of AllenNLP is imported, and never
raises: an error becomes one warning, and then an `ImportError` of AllenNLP, if AllenNLP is imported. The fixes are
listed in `elmo_tasks.compat.fixes`.
"""

import sys
import warnings
from contextlib import suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

__all__ = ["install"]

_installed = False


def install() -> None:
    """
    Registers all fixes, once. Called by torch; call it yourself, before AllenNLP is imported, only if you have
    switched that off with `TORCH_DEVICE_BACKEND_AUTOLOAD=0`.

    It never raises. If the fixes cannot be registered, it warns, and AllenNLP refuses to be imported.
    """
    global _installed
    if _installed:
        return
    _installed = True
    if "allennlp.version" in sys.modules:
        # Its modules have taken functions from each other, which can no longer be replaced.
        _warn(
            "elmo_tasks.compat.install() must be called before AllenNLP is imported, but 'allennlp' is imported "
            "already and will not work with this torch. Remedy: import torch first, or call install() first, and do "
            "not set TORCH_DEVICE_BACKEND_AUTOLOAD=0."
        )
        return
    try:
        from elmo_tasks.compat import fixes

        fixes.register()
    # No error here may reach those who want torch alone.
    except Exception as error:
        message = (
            f"elmo_tasks could not prepare AllenNLP for this environment ({type(error).__name__}: {error}). torch "
            "and the vectors of elmo_tasks work; AllenNLP cannot be imported. Remedy: reinstall elmo_tasks, or "
            "uninstall it."
        )
        sys.meta_path.insert(0, _Refusal(message))
        _warn(message)


def _warn(message: str) -> None:
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    # Warnings may be errors here, or shown by a function that fails; torch must be imported all the same.
    except Exception:
        with suppress(Exception):
            print(f"warning: {message}", file=sys.stderr)


class _Refusal(MetaPathFinder, Loader):
    """
    Finds AllenNLP where it is installed, and raises an error when it is executed.
    """

    def __init__(self, message: str) -> None:
        self._message = message

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != "allennlp" or PathFinder.find_spec(fullname) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        raise ImportError(self._message, name="allennlp")
