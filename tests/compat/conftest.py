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

# What `allennlp` has done in a new interpreter before it parses its arguments.
START = """
import gc, json, logging, socket, sys
logging.basicConfig(level=logging.INFO)
connections, collections = [], []
def connect(self, address):
    connections.append(address)
    raise OSError("the test has no network")
socket.socket.connect = connect
import torch
# How soon a collection is due depends on what was allocated before: start the count here.
gc.collect()
gc.callbacks.append(lambda phase, info: phase == "start" and collections.append(info["generation"]))
import allennlp.commands
from allennlp.common.plugins import import_plugins
import_plugins()
from allennlp.models import Model
print(json.dumps({
    "models": {name: Model.by_name(name).__module__ for name in Model.list_available()},
    "modules": sorted(sys.modules),
    "connections": [str(connection) for connection in connections],
    "full_collections": collections.count(2),
}))
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
    """The models, modules, connections and collections after the imports of `allennlp` in a new interpreter."""
    return json.loads(run_python(START).splitlines()[-1])
