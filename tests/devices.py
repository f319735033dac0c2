"""
The devices of a test: the CPU on every machine, to keep the test correct, and a GPU if available.
"""

import pytest
import torch

_NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
ON_CUDA = pytest.param("cuda", marks=[pytest.mark.gpu, _NEEDS_CUDA])
DEVICES = ["cpu", ON_CUDA]
