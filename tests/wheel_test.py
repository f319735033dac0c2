"""Tests that the wheel has the right files, and that it works outside the checkout."""

import configparser
import email
import importlib.util
import os
import subprocess
import sys
import tomllib
import zipfile

import h5py
import pytest

from elmo_tasks.version import __version__
from tests.paths import CHECKOUT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("setuptools") is None,
        reason="setuptools is not installed, which the wheel is built with: `pip install setuptools`",
    ),
]
# Folders of the checkout that a wheel has inside the package.
FOLDERS = ("fixtures", "training_configs")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built without a network, and without writing into the checkout."""
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("elmo_tasks", *FOLDERS, "setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        (source / name).symlink_to(CHECKOUT / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, source],
        check=True,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


class TestWheel:
    def test_it_has_the_package_the_configs_and_the_data(self, wheel):
        files = [
            path for folder in ("elmo_tasks", *FOLDERS) for path in (CHECKOUT / folder).rglob("*") if path.is_file()
        ]
        names = {str(path.relative_to(CHECKOUT)) for path in files if "__pycache__" not in path.parts}
        expected = {name if name.startswith("elmo_tasks/") else f"elmo_tasks/{name}" for name in names}
        assert {"elmo_tasks/bilm/bilm.py", "elmo_tasks/fixtures/ner/dev.txt", "elmo_tasks/py.typed"} < expected
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected

    def test_its_metadata(self, wheel):
        (name,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name))
        assert metadata["Version"] == __version__
        assert metadata["License"] == "Apache-2.0" and metadata["Author"] == "The elmo_tasks developers"
        requirements = [line for line in metadata.get_all("Requires-Dist") if "extra" not in line]
        packages = {line.partition(">=")[0] for line in requirements}
        assert packages == {"torch", "numpy", "h5py", "safetensors", "tqdm"}
        extras = {"allennlp", "spacy", "sklearn", "hub", "parquet", "ray", "serve", "demo", "docs", "dev"}
        assert set(metadata.get_all("Provides-Extra")) == extras
        for name in ("LICENSE", "NOTICE"):
            (path,) = [path for path in wheel.namelist() if path.endswith(f"dist-info/licenses/{name}")]
            assert wheel.read(path) == (CHECKOUT / name).read_bytes()


def test_both_packages_have_the_same_version_and_need_the_same_for_allennlp():
    today = tomllib.loads((CHECKOUT / "allennlp_today" / "pyproject.toml").read_text())["project"]
    setup = configparser.ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    extra = setup["options.extras_require"]["allennlp"] + setup["options"]["install_requires"]
    assert set(today["dependencies"]) <= set(extra.splitlines())
    assert today["version"] == __version__


# Embeds a sentence, and plans the runs of a table.
PROGRAM = """
import runpy, sys
from elmo_tasks.__main__ import main
assert main(["embed", "text.txt", "out.h5"]) == 0
sys.argv = ["allennlp", *"elmo-tables --table 1 --tasks ner --seeds 1 --dry-run".split()]
runpy.run_module("allennlp", run_name="__main__")
"""


def test_it_works_outside_the_checkout(wheel, tmp_path):
    wheel.extractall(tmp_path / "installed")
    (tmp_path / "text.txt").write_text("A dog barks .\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ELMO_TASKS_")}
    environment["PYTHONPATH"] = str(tmp_path / "installed")
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["0"].shape[-2:] == (4, 256)
    planned = [line.split()[-1] for line in process.stdout.splitlines() if "ner/" in line]
    assert planned == ["ner/baseline/1", "ner/input/1"]
