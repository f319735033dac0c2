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


@pytest.fixture
def take_plan_without_data(monkeypatch: pytest.MonkeyPatch):
    """Makes a script take the runs of a plan as if their data were there: `take_plan_without_data(script)`."""

    def take(script: ModuleType) -> None:
        replication_of = script.replication_of

        def without_data(*arguments, **keywords):
            replication = replication_of(*arguments, **keywords)
            replication.missing_data.clear()
            return replication

        monkeypatch.setattr(script, "replication_of", without_data)

    return take
