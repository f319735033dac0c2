import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RunPython = Callable[..., str]

TINY_PLUGIN = """
from allennlp.models import Model

@Model.register("tiny")
class Tiny(Model):
    pass
"""
# Imports what `allennlp` does in a new interpreter and opens an archive, all without the packages
# that most users lack, and in a folder with modules of the same names as others. Then it uses them.
START = """
import gc, json, os, socket, sys
from pathlib import Path
for name in ("checklist", "conllu", "nltk", "local_plugin", "word2number"):
    Path(name).mkdir()
    Path(name, "__init__.py").touch()
Path(".allennlp_plugins").write_text("local_plugin")
sys.modules.update(dict.fromkeys(["torchvision", "fairscale", "boto3", "google.cloud.storage"]))
threshold = gc.get_threshold()
connections = []
def connect(self, address):
    connections.append(address)
    raise OSError("the test has no network")
socket.socket.connect = connect
import torch
import allennlp.commands
from allennlp.models import Model, load_archive
try:
    load_archive("none.tar.gz")
except FileNotFoundError:
    pass
report = {
    "models": {name: Model.by_name(name).__module__ for name in Model.list_available()},
    "modules": sorted(sys.modules),
    "of the folder": [
        name
        for name, module in sys.modules.items()
        if os.getcwd() in str(getattr(module, "__dict__", {}).get("__file__"))
    ],
    "connections": [str(connection) for connection in connections],
    "errors": {},
    "unchanged": [gc.get_threshold() == threshold, torch.tensor(1e-39).mul(1).item() != 0],
}
from allennlp.common.file_utils import cached_path
from allennlp.nn.checkpoint import FairScaleCheckpointWrapper
from allennlp.nn.parallel import FairScaleFsdpAccelerator
accelerator = FairScaleFsdpAccelerator(local_rank=0, world_size=1, cuda_device=-1)
uses = {
    "fairscale": lambda: accelerator.wrap_model(torch.nn.Linear(1, 1)),
    "fairscale, checkpoints": lambda: FairScaleCheckpointWrapper().wrap_module(
        torch.nn.Linear(1, 1)
    ),
    "boto3": lambda: cached_path("s3://a/b"),
    "google-cloud-storage": lambda: cached_path("gs://a/b"),
}
for name, use in uses.items():
    try:
        use()
    except Exception as error:
        report["errors"][name] = str(error)
print(json.dumps(report))
"""


@pytest.fixture(scope="session")
def fixtures_root() -> Path:
    """The small data of the repository."""
    return Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="session")
def run_python(tmp_path_factory: pytest.TempPathFactory) -> RunPython:
    """Runs code in a new interpreter, in an empty folder, and returns what it prints."""

    def run(code: str) -> str:
        folder = tmp_path_factory.mktemp("empty")
        process = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    return run


@pytest.fixture(scope="session")
def start(run_python: RunPython, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """
    The models, modules and connections after the start of AllenNLP, and the errors from using
    missing packages. A tiny plugin is installed: for Python, a package is, if the metadata next to
    it says so.
    """
    folder = tmp_path_factory.mktemp("installed")
    (folder / "tiny_plugin.py").write_text(TINY_PLUGIN)
    (folder / "tiny-1.0.dist-info").mkdir()
    (folder / "tiny-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
    )
    (folder / "tiny-1.0.dist-info" / "entry_points.txt").write_text(
        "[allennlp.plugins]\ntiny = tiny_plugin\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(folder), os.environ.get("PYTHONPATH", "")]
        # An empty one would be the current folder.
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        # As the command `allennlp`, which does not have the current folder in its path.
        patch.setenv("PYTHONSAFEPATH", "1")
        return json.loads(run_python(START).splitlines()[-1])
