"""Fixtures for the tests of elmo_tasks.compat."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunPython = Callable[..., str]

# Does what `allennlp` does in a new interpreter before it parses its arguments, without torchvision and fairscale, and
# then uses fairscale.
START = """
import gc, json, socket, sys
sys.modules["torchvision"] = sys.modules["fairscale"] = None
connections = []
def connect(self, address):
    connections.append(address)
    raise OSError("the test has no network")
socket.socket.connect = connect
import torch
import allennlp.commands
from allennlp.common.plugins import import_plugins
import_plugins()
from allennlp.models import Model
report = {
    "models": {name: Model.by_name(name).__module__ for name in Model.list_available()},
    "modules": sorted(sys.modules),
    "connections": [str(connection) for connection in connections],
    "errors": {},
    "settings": [gc.get_threshold()[0], torch.tensor(1e-39).mul(1).item() != 0],
}
from allennlp.nn.checkpoint import FairScaleCheckpointWrapper
from allennlp.nn.parallel import FairScaleFsdpAccelerator
accelerator = FairScaleFsdpAccelerator(local_rank=0, world_size=1, cuda_device=-1)
uses = {
    "fairscale checkpoints": lambda: FairScaleCheckpointWrapper().wrap_module(torch.nn.Linear(1, 1)),
    "fairscale modules": lambda: accelerator.wrap_module(torch.nn.Linear(1, 1)),
    "fairscale models": lambda: accelerator.wrap_model(torch.nn.Linear(1, 1)),
}
for name, use in uses.items():
    try:
        use()
    except Exception as error:
        report["errors"][name] = str(error)
print(json.dumps(report))
"""


@pytest.fixture(scope="session")
def run_python(tmp_path_factory: pytest.TempPathFactory) -> RunPython:
    """Runs code in a new interpreter, in an empty folder, and returns what it prints."""

    def run(code: str, *, path: Path | None = None) -> str:
        environment = dict(os.environ)
        if path is not None:
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(path), environment.get("PYTHONPATH")]))
        process = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            cwd=tmp_path_factory.mktemp("empty"),
            env=environment,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    return run


@pytest.fixture(scope="session")
def start(run_python: RunPython) -> dict[str, Any]:
    """
    The models, modules and connections after the imports of `allennlp` in a new interpreter, and the errors from using
    fairscale without an installation.
    """
    return json.loads(run_python(START).splitlines()[-1])
