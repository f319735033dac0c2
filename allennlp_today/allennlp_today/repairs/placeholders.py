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

# The modules that AllenNLP and cached-path import.
_PACKAGES = {
    "torchvision": ["torchvision", "torchvision.ops", "torchvision.ops.boxes"],
    "fairscale": [
        "fairscale",
        "fairscale.nn",
        "fairscale.nn.wrap",
        "fairscale.nn.misc",
        "fairscale.nn.checkpoint",
    ],
    "boto3": ["cached_path.schemes.s3", "cached_path.schemes.r2"],
    "google-cloud-storage": ["cached_path.schemes.gs"],
}
_PACKAGES["fairscale"] += ["fairscale.optim", "fairscale.optim.grad_scaler"]


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
    `'google.cloud'`. Cause: AllenNLP and cached-path import them unconditionally, and twenty
    packages with them. Whatever uses one of them raises an error that names the package.
    """
    clients = importing.startswith("cached_path")
    for package in ("boto3", "google-cloud-storage") if clients else ("torchvision", "fairscale"):
        try:
            for name in _PACKAGES[package]:
                importlib.import_module(name)
        # A torchvision of the wrong version raises RuntimeError, a broken library OSError.
        except Exception as error:
            for name in [
                name for name in sys.modules if name == package or name.startswith(f"{package}.")
            ]:
                del sys.modules[name]
            for name in _PACKAGES[package]:
                module = sys.modules[name] = _Placeholder(
                    name, f"the package {package} cannot be imported ({error})"
                )
                parent, _, child = name.rpartition(".")
                if parent:
                    setattr(sys.modules[parent], child, module)
    yield


@around_import("rouge")
def replace_pkg_resources(module: str) -> Iterator[None]:
    """
    Symptom: the scripts of allennlp-models for NarrativeQA and ORB raise
    `No module named 'pkg_resources'`. Cause: setuptools has removed the module, with which py-rouge
    finds its word list.
    """
    replacement: Any = ModuleType("pkg_resources")
    replacement.resource_filename = lambda name, file: str(
        Path(sys.modules[name].__file__ or "").with_name(file)
    )
    with temporary_modules(
        {} if importlib.util.find_spec("pkg_resources") else {"pkg_resources": replacement}
    ):
        yield


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
