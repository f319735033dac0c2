"""Placeholders for packages that AllenNLP imports on every start but no text model uses."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from allennlp_today.import_hooks import around_import, temporary_modules

# Package -> the modules that AllenNLP or cached-path imports.
_MODULES = {
    "torchvision": ["torchvision", "torchvision.ops", "torchvision.ops.boxes"],
    "fairscale": [
        "fairscale",
        "fairscale.nn",
        "fairscale.nn.wrap",
        "fairscale.nn.misc",
        "fairscale.nn.checkpoint",
        "fairscale.optim",
        "fairscale.optim.grad_scaler",
    ],
    "boto3": ["cached_path.schemes.s3", "cached_path.schemes.r2"],
    "google-cloud-storage": ["cached_path.schemes.gs"],
}


@around_import(
    "allennlp.data.image_loader",
    "allennlp.modules.vision.grid_embedder",
    "allennlp.modules.vision.region_detector",
    "allennlp.nn.checkpoint.fairscale_checkpoint_wrapper",
    "allennlp.nn.parallel.fairscale_fsdp_accelerator",
    "cached_path.schemes",
)
def replace_missing_packages(importing: str) -> Iterator[None]:
    """
    Symptom: `import allennlp` raises `No module named 'torchvision'` (or, with a torchvision built
    for a different torch, `operator torchvision::nms does not exist`), `'fairscale'`, `'boto3'` or
    `'google.cloud'`. Cause: AllenNLP and cached-path import them unconditionally, and they
    import twenty more packages. Whatever uses one of them raises an error that names the package.
    """
    packages = ["torchvision", "fairscale"]
    if importing.startswith("cached_path"):
        packages = ["boto3", "google-cloud-storage"]
    for package in packages:
        try:
            for name in _MODULES[package]:
                importlib.import_module(name)
        # A torchvision of the wrong version raises RuntimeError, a broken library OSError.
        except Exception as error:
            _forget(package)
            _add_placeholders(package, f"the package {package} cannot be imported ({error})")
    yield


def _forget(package: str) -> None:
    """Removes those modules of a package that were imported before the error."""
    for name in list(sys.modules):
        if name == package or name.startswith(f"{package}."):
            del sys.modules[name]


def _add_placeholders(package: str, reason: str) -> None:
    for name in _MODULES[package]:
        placeholder = _Placeholder(name, reason)
        sys.modules[name] = placeholder
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, placeholder)


@around_import("rouge")
def replace_pkg_resources(module: str) -> Iterator[None]:
    """
    Symptom: the scripts of allennlp-models for NarrativeQA and ORB raise
    `No module named 'pkg_resources'`. Cause: setuptools has removed the module, with which py-rouge
    finds its word list.
    """
    if importlib.util.find_spec("pkg_resources"):
        yield
        return
    replacement: Any = ModuleType("pkg_resources")
    replacement.resource_filename = _resource_filename
    with temporary_modules({"pkg_resources": replacement}):
        yield


def _resource_filename(module: str, file: str) -> str:
    """The path of a file next to a module."""
    module_file = Path(sys.modules[module].__file__ or "")
    return str(module_file.with_name(file))


class _Placeholder(ModuleType):
    """A module with classes of any name, which raise an error when they are called."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        # `importlib.util.find_spec` raises ValueError for a module in sys.modules with a spec of
        # None.
        self.__spec__ = ModuleSpec(name, loader=None, is_package=True)
        self._reason = reason

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):  # Read by the import system about this module itself.
            raise AttributeError(name)

        def __init__(self_: Any, *args: Any, **kwargs: Any) -> None:
            raise ImportError(f"{name}: {self._reason}")

        # cached-path registers its clients by `scheme`.
        return type(name, (), {"__init__": __init__, "scheme": name.removesuffix("Client").lower()})
