"""The scripts in `benchmarks/gpu`, which import each other as `python SCRIPT` does."""

import importlib
from types import ModuleType

import pytest
import torch

from tests.paths import CHECKOUT

SCRIPTS = CHECKOUT / "benchmarks" / "gpu"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch):
    """Imports a script by its name."""
    monkeypatch.syspath_prepend(SCRIPTS)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


@pytest.fixture(autouse=True)
def one_thread():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)
