"""Tests that the wheel has the right files, and that it works outside the checkout."""

import email
import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import pytest

from elmo_tasks.version import __version__
from tests.paths import CHECKOUT, TRAINING_CONFIGS

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


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the content of the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    wheel.extractall(folder)
    return folder


@pytest.fixture
def run_outside(installed: Path, tmp_path: Path):
    """Runs Python with the content of the wheel, in an empty folder."""

    def run(*arguments: object) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ELMO_TASKS_")}
        process = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={**environment, "PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, process.stderr
        return process.stdout

    return run


class TestWheel:
    def test_it_has_every_module(self, wheel):
        modules = {str(path.relative_to(CHECKOUT)) for path in (CHECKOUT / "elmo_tasks").rglob("*.py")}
        assert "elmo_tasks/bilm/bilm.py" in modules
        assert {name for name in wheel.namelist() if name.endswith(".py")} == modules

    def test_it_has_the_configs_and_the_data(self, wheel):
        expected = {
            f"elmo_tasks/{path.relative_to(CHECKOUT)}"
            for folder in FOLDERS
            for path in (CHECKOUT / folder).rglob("*")
            if path.is_file()
        }
        assert "elmo_tasks/training_configs/lib/ner.libsonnet" in expected
        assert "elmo_tasks/fixtures/glove/glove.open.100d.txt.gz" in expected
        prefixes = tuple(f"elmo_tasks/{folder}/" for folder in FOLDERS)
        assert {name for name in wheel.namelist() if name.startswith(prefixes)} == expected

    def test_it_has_the_models_with_their_cards_and_py_typed(self, wheel):
        pretrained = {str(p.relative_to(CHECKOUT)) for p in (CHECKOUT / "elmo_tasks/pretrained").rglob("*.*")}
        assert "elmo_tasks/pretrained/small-open/README.md" in pretrained
        assert pretrained | {"elmo_tasks/py.typed"} <= set(wheel.namelist())

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


class TestOutsideTheCheckout:
    def test_it_embeds_a_sentence(self, run_outside, tmp_path):
        (tmp_path / "text.txt").write_text("A dog barks .\n")
        run_outside("-m", "elmo_tasks", "embed", "text.txt", "out.h5")
        with h5py.File(tmp_path / "out.h5") as file:
            assert file["0"].shape[-2:] == (4, 256)

    def test_it_writes_its_configs(self, run_outside, tmp_path):
        run_outside("-m", "elmo_tasks", "configs", "my")
        names = {path.name for path in TRAINING_CONFIGS.rglob("*sonnet")}
        assert "ner_elmo.jsonnet" in names and {path.name for path in (tmp_path / "my").rglob("*sonnet")} == names

    def test_it_plans_runs_of_a_table(self, run_outside):
        arguments = "elmo-tables --table 1 --tasks ner --seeds 1 --dry-run".split()  # noqa: SIM905
        lines = run_outside("-m", "allennlp", *arguments).splitlines()
        assert [line.split()[-1] for line in lines[:2]] == ["ner/baseline/1", "ner/input/1"]
