"""The devices of a test: the CPU on every machine, so that the test stays correct, and a GPU where there is one."""

import pytest
import torch

_NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
ON_CUDA = pytest.param("cuda", marks=[pytest.mark.gpu, _NEEDS_CUDA])
DEVICES = ["cpu", ON_CUDA]
