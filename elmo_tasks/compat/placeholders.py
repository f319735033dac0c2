"""Placeholders for packages that AllenNLP imports on every start but no text model uses."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from elmo_tasks.compat.import_hooks import around_import, temporary_modules

# The modules that AllenNLP and cached-path import, and the names for which they need a `from` import.
_PACKAGES: dict[str, dict[str, tuple[str, ...]]] = {
    "torchvision": {"torchvision": (), "torchvision.ops": (), "torchvision.ops.boxes": ()},
    "fairscale": {
        "fairscale": (),
        "fairscale.nn": ("FullyShardedDataParallel",),
        "fairscale.nn.wrap": ("enable_wrap", "wrap"),
        "fairscale.nn.misc": ("FlattenParamsWrapper",),
        "fairscale.nn.checkpoint": ("checkpoint_wrapper",),
        "fairscale.optim": (),
        "fairscale.optim.grad_scaler": ("GradScaler",),
    },
    "boto3": {"cached_path.schemes.s3": ("S3Client",), "cached_path.schemes.r2": ("R2Client",)},
    "google-cloud-storage": {"cached_path.schemes.gs": ("GsClient",)},
}


@around_import(
    "allennlp.data.image_loader",
    "allennlp.modules.vision.grid_embedder",
    "allennlp.modules.vision.region_detector",
    "allennlp.nn.checkpoint.fairscale_checkpoint_wrapper",
    "allennlp.nn.parallel.fairscale_fsdp_accelerator",
    "cached_path.schemes",
)
@contextmanager
def replace_missing_packages(module: str) -> Iterator[None]:
    """
    Symptom: `import allennlp` raises `No module named 'torchvision'` (or, with a torchvision built for a different
    torch, `operator torchvision::nms does not exist`), `'fairscale'`, `'boto3'` or `'google.cloud'`.
    Cause: AllenNLP and cached-path import them unconditionally, for images, sharded models and clouds, and twenty
    packages with them. Whatever uses one of them raises an error that names the package.
    """
    clients = module.startswith("cached_path")
    for package in ("boto3", "google-cloud-storage") if clients else ("torchvision", "fairscale"):
        try:
            for name in _PACKAGES[package]:
                importlib.import_module(name)
        # A torchvision of the wrong version raises RuntimeError, a broken library OSError.
        except Exception as error:
            for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
                del sys.modules[name]
            _put_placeholders(_PACKAGES[package], f"the package {package} cannot be imported ({error})")
    yield


@around_import("rouge")
@contextmanager
def replace_pkg_resources(module: str) -> Iterator[None]:
    """
    Symptom: the scripts of allennlp-models for NarrativeQA and ORB raise `No module named 'pkg_resources'`.
    Cause: setuptools has removed the module, with which py-rouge finds its word list.
    """
    replacement: Any = ModuleType("pkg_resources")
    replacement.resource_filename = lambda name, file: str(Path(sys.modules[name].__file__ or "").with_name(file))
    with temporary_modules({} if importlib.util.find_spec("pkg_resources") else {"pkg_resources": replacement}):
        yield


def _put_placeholders(modules: dict[str, tuple[str, ...]], reason: str) -> None:
    for name, exports in modules.items():
        module = sys.modules[name] = ModuleType(name, reason)
        module.__path__ = []
        # `importlib.util.find_spec` raises ValueError for a module in sys.modules with a spec of None.
        module.__spec__ = ModuleSpec(name, loader=None, is_package=True)
        for export in exports:
            setattr(module, export, _placeholder_class(export, reason))
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def _placeholder_class(name: str, reason: str) -> type:
    # A class, because AllenNLP derives from one of these. The error is raised only when the class is called.
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise ImportError(f"{name}: {reason}")

    # cached-path registers its clients by `scheme`.
    return type(name, (), {"__init__": __init__, "scheme": name.removesuffix("Client").lower()})
