"""The device that is checked: whether it can be used, and what it is."""

import os
import platform
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import torch

from elmo_tasks.bilm.lstm.precision import supports_bf16
from elmo_tasks.gpu_check.part import Numbers, PartFailed, Setting
from elmo_tasks.printable import one_line
from elmo_tasks.version import __version__

__all__ = ["describe", "usable_device", "why_no_cuda"]

_PACKAGES = ("torch", "triton", "numpy", "h5py", "safetensors", "lmdb")
_VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "ELMO_TASKS_CUDA_GRAPHS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TRITON_INTERPRET",
)


def why_no_cuda() -> str | None:
    """Why CUDA cannot be used, and what to do, in one line; `None` if it can."""
    if torch.version.cuda is None and torch.version.hip is None:
        return (
            f"torch {torch.__version__} was built without CUDA: install a build with it, for example `pip install "
            "torch` on Linux"
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    try:
        # It says more than `torch.cuda.is_available`: a driver that is missing, or older than torch needs.
        torch.cuda.init()
        n_devices = torch.cuda.device_count()
    except (RuntimeError, AssertionError) as error:
        n_devices, reason = 0, one_line(error)
    else:
        reason = "torch sees no GPU"
    if n_devices:
        return None
    if visible is not None and not visible.strip(" ,-1"):
        return (
            f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides all GPUs: unset it, or set it to the number of one"
            if visible.strip() in ("", "-1")
            else f"CUDA_VISIBLE_DEVICES is {visible!r}, and there is no such GPU: {reason}"
        )
    return f"CUDA cannot be used: {reason}"


def usable_device(name: str) -> torch.device:
    """
    The device of a name, a GPU with its number.

    # Raises

    `ValueError`
        If there is no device of this name, or the check is not made for it.
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"the device must be cpu, cuda or cuda:N, but is {name!r}") from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise ValueError(f"the device must be cpu, cuda or cuda:N, but is {name!r}")
    index, n_devices = device.index or 0, torch.cuda.device_count()
    if index >= n_devices:
        raise ValueError(f"the device must be one of the {n_devices} GPUs, from cuda:0 on, but is {name!r}")
    return torch.device("cuda", index)


def describe(setting: Setting) -> Numbers:
    """Versions, device and the environment variables that matter; a GPU computes a sum, too."""
    found: Numbers = {
        "elmo_tasks": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: metadata.version(name) for name in _PACKAGES if find_spec(name) is not None},
        "torch was built for": f"CUDA {torch.version.cuda}" if torch.version.cuda else "the CPU or another device",
        "environment": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "threads": torch.get_num_threads(),
        "device": str(setting.device),
        "has bf16": supports_bf16(setting.device),
    }
    if setting.is_cuda:
        found |= _describe_gpu(setting.device)
    total = float(torch.ones(1000, device=setting.device).sum())
    if total != 1000.0:
        raise PartFailed(f"the sum of 1,000 ones is {total}", found)
    return found


def _describe_gpu(device: torch.device) -> Numbers:
    properties = torch.cuda.get_device_properties(device)
    free, total = torch.cuda.mem_get_info(device)
    found: dict[str, Any] = {
        "name": properties.name,
        "compute capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "memory in MiB": total // 2**20,
        # What other processes have taken is not ours to use.
        "free memory in MiB": free // 2**20,
        "GPUs": torch.cuda.device_count(),
        "cuDNN": torch.backends.cudnn.version(),
    }
    version = getattr(torch._C, "_cuda_getDriverVersion", None)
    if version is not None:
        found["driver is for CUDA"] = f"{version() // 1000}.{version() % 1000 // 10}"
    return found
