"""The devices of a test: the CPU on every machine, so that the test stays correct, and a GPU where there is one."""

import pytest
import torch

ON_CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA"))
DEVICES = ["cpu", ON_CUDA]
