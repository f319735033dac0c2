"""
Placeholders for packages that AllenNLP imports on every start but no text model uses.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

__all__ = ["import_or_replace_fairscale", "import_or_replace_torchvision"]

# The modules that AllenNLP imports, and the names that it imports *from* them (a `from` import needs the name).
_TORCHVISION: dict[str, tuple[str, ...]] = {
    "torchvision": (),
    "torchvision.ops": (),
    "torchvision.ops.boxes": (),
}
_FAIRSCALE: dict[str, tuple[str, ...]] = {
    "fairscale": (),
    "fairscale.nn": ("FullyShardedDataParallel",),
    "fairscale.nn.wrap": ("enable_wrap", "wrap"),
    "fairscale.nn.misc": ("FlattenParamsWrapper",),
    "fairscale.nn.checkpoint": ("checkpoint_wrapper",),
    "fairscale.optim": (),
    "fairscale.optim.grad_scaler": ("GradScaler",),
}


@contextmanager
def import_or_replace_torchvision() -> Iterator[None]:
    """
    Symptom: `import allennlp.data` raises `No module named 'torchvision'`, or, with a torchvision built for
    another torch, `operator torchvision::nms does not exist`.

    Cause: `allennlp.data.image_loader` and `allennlp.modules.vision` import it unconditionally. Seen with AllenNLP
    2.10.1 and torch 2.13.
    """
    _import_or_replace("torchvision", _TORCHVISION, remedy="install the torchvision that belongs to your torch")
    yield


@contextmanager
def import_or_replace_fairscale() -> Iterator[None]:
    """
    Symptom: `import allennlp.nn.parallel` raises `No module named 'fairscale'`.

    Cause: `allennlp.nn.parallel` and `allennlp.nn.checkpoint` import it unconditionally; it has no wheels and is
    no longer maintained. Seen with AllenNLP 2.10.1.
    """
    _import_or_replace("fairscale", _FAIRSCALE, remedy='`pip install fairscale`, or use the "torch" accelerator')
    yield


def _import_or_replace(package: str, modules: dict[str, tuple[str, ...]], *, remedy: str) -> None:
    try:
        for name in modules:
            importlib.import_module(name)
        return
    # Not only ImportError: a torchvision of the wrong version fails with RuntimeError, a broken library with
    # OSError.
    except Exception as error:
        reason = (
            f"needs the package '{package}', which could not be imported "
            f"({type(error).__name__}: {error}). AllenNLP uses it for images and sharded models only; {remedy}."
        )
    for name in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
        del sys.modules[name]
    for name, exports in modules.items():
        sys.modules[name] = _PlaceholderModule(name, exports, reason)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, sys.modules[name])


class _PlaceholderModule(ModuleType):
    """
    An empty package. Reading an attribute that it lacks raises an error with the missing package and the remedy.
    """

    def __init__(self, name: str, exports: tuple[str, ...], reason: str) -> None:
        super().__init__(name, f"Placeholder: {reason}")
        self.__path__: list[str] = []
        # `importlib.util.find_spec` raises ValueError for a module in sys.modules whose spec is None.
        self.__spec__ = ModuleSpec(name, loader=None, is_package=True)
        self._reason = reason
        for export in exports:
            setattr(self, export, _placeholder_class(f"{name}.{export}", reason))

    def __getattr__(self, name: str) -> NoReturn:
        # AttributeError rather than ImportError: `inspect` and `pickle` call getattr on every module in
        # `sys.modules` and handle no other error.
        raise AttributeError(f"{self.__name__}.{name} {self._reason}")


def _placeholder_class(name: str, reason: str) -> type:
    # A class, because AllenNLP derives from one of these. It is used for real once it is called.
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise ImportError(f"{name} {reason}")

    module, _, class_name = name.rpartition(".")
    return type(class_name, (), {"__init__": __init__, "__module__": module, "__doc__": f"Placeholder: {reason}"})
