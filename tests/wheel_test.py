"""Tests that the wheel has the right files, and that it works outside the checkout."""

import configparser
import email
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from urllib.request import urlretrieve

import h5py
import pytest

from elmo_tasks.version import __version__
from tests.paths import CHECKOUT

pytestmark = [
    pytest.mark.weekly,
    pytest.mark.skipif(
        importlib.util.find_spec("setuptools") is None,
        reason="setuptools, which builds the wheel, is not installed: `pip install setuptools`",
    ),
]
# Folders of the checkout that a wheel has inside the package.
FOLDERS = ("fixtures", "training_configs")


def build(folder: Path, source: Path) -> None:
    """Builds a wheel without a network."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", folder, source], check=True)


def source_in(folder: Path) -> Path:
    """What a wheel is built from, in links, so nothing is written into the checkout."""
    for name in (
        "elmo_tasks",
        *FOLDERS,
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "NOTICE",
    ):
        (folder / name).symlink_to(CHECKOUT / name)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build(folder, source_in(tmp_path_factory.mktemp("source")))
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def names_in(folder: Path, relative_to: Path) -> set[str]:
    """The files in a folder."""
    names = set()
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            names.add(str(path.relative_to(relative_to)))
    return names


class TestWheel:
    def test_it_has_the_package_the_configs_and_the_data(self, wheel):
        expected = names_in(CHECKOUT / "elmo_tasks", relative_to=CHECKOUT)
        for folder in FOLDERS:
            for name in names_in(CHECKOUT / folder, relative_to=CHECKOUT):
                expected.add(f"elmo_tasks/{name}")
        for name in ("bilm/bilm.py", "fixtures/ner/dev.txt", "py.typed"):
            assert f"elmo_tasks/{name}" in expected
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == expected

    def test_its_metadata(self, wheel):
        (name,) = [name for name in wheel.namelist() if name.endswith("dist-info/METADATA")]
        metadata = email.message_from_bytes(wheel.read(name))
        assert metadata["Version"] == __version__
        assert metadata["License"] == "Apache-2.0"
        assert metadata["Author"] == "The elmo_tasks developers"
        requirements = [line for line in metadata.get_all("Requires-Dist") if "extra" not in line]
        packages = {line.partition(">=")[0] for line in requirements}
        assert packages == {"torch", "numpy", "h5py", "safetensors", "tqdm", "filelock"}
        extras = {
            "allennlp",
            "spacy",
            "sklearn",
            "hub",
            "parquet",
            "ray",
            "serve",
            "demo",
            "docs",
            "dev",
            "tables",
        }
        assert set(metadata.get_all("Provides-Extra")) == extras
        for name in ("LICENSE", "NOTICE"):
            (path,) = [
                path for path in wheel.namelist() if path.endswith(f"dist-info/licenses/{name}")
            ]
            assert wheel.read(path) == (CHECKOUT / name).read_bytes()


def test_both_packages_have_the_same_version_and_need_the_same_for_allennlp():
    today = tomllib.loads((CHECKOUT / "allennlp_today" / "pyproject.toml").read_text())["project"]
    setup = configparser.ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    extra = setup["options.extras_require"]["allennlp"] + setup["options"]["install_requires"]
    assert set(today["dependencies"]) <= set(extra.splitlines())
    assert today["version"] == __version__


def variables_without(*prefixes: str) -> dict[str, str]:
    """The variables of this process, except those with such names."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


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
    environment = variables_without("ELMO_TASKS_")
    environment["PYTHONPATH"] = str(tmp_path / "installed")
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["0"].shape[-2:] == (4, 256)
    planned = [line.split()[-1] for line in process.stdout.splitlines() if "ner/" in line]
    assert planned == ["ner/baseline/1", "ner/input/1"]


def test_an_editable_installation_is_found_next_to_the_checkout(tmp_path):
    """
    In the folder that has a checkout named `elmo_tasks`, Python could also import that as a
    package.
    """
    (tmp_path / "elmo_tasks").mkdir()
    source = source_in(tmp_path / "elmo_tasks")
    build = "from setuptools.build_meta import build_editable; build_editable('..')"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    (path,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(path).extractall(tmp_path / "installed")
    program = (
        "import site; site.addsitedir('installed'); import elmo_tasks; print(elmo_tasks.__file__)"
    )
    process = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert process.stdout == f"{source / 'elmo_tasks' / '__init__.py'}\n", process.stderr


# What a newcomer who has only the wheel installs later, as the messages say.
MISSING = {
    "elmo_tasks",
    "allennlp",
    "allennlp_models",
    "allennlp_today",
    "allennlp_today_hook.py",
    "cached_path",
    "spacy",
}
JOURNEY = """
from elmo_tasks import Elmo
assert Elmo.from_pretrained().embed(["A dog barks."])[0].shape == (4, 256)
import sys
from elmo_tasks import TrainedTask
(predicate,) = TrainedTask(sys.argv[1])("Ann sold the house.")
print([(role["label"], role["text"]) for role in predicate["roles"]])
"""


def make_release(folder: Path, work: Path) -> None:
    """
    The files of a release, as the workflow makes them, and the other packages, so pip needs no
    index.
    """
    source = source_in(work)
    (source / "elmo_tasks").unlink()
    package = source / "elmo_tasks"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "elmo_tasks", package, ignore=ignore)
    version = package / "version.py"
    content = version.read_text()
    version.write_text(content.replace('RELEASE = ""', f'RELEASE = "{folder.as_uri()}"'))
    build(folder, source)
    build(folder, shutil.copytree(CHECKOUT / "allennlp_today", work / "today"))
    with tarfile.open(folder / "srl.tar.gz", "w:gz") as archive:
        for file in (CHECKOUT / "models" / "srl").iterdir():
            archive.add(file, file.name)
    for name in ("spacy", "allennlp", "allennlp_models", "cached_path"):
        installed = distribution(name)
        with zipfile.ZipFile(folder / f"{name}-{installed.version}-py3-none-any.whl", "w") as file:
            for path in installed.files or []:
                if ".." not in path.parts and path.locate().is_file():
                    file.write(path.locate(), path)


def make_environment(folder: Path) -> None:
    """An environment with the packages of this one, except those in `MISSING`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip = folder / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec {folder}/bin/python -m pip "$@"\n')
    pip.chmod(0o755)
    (folder / "others").mkdir()
    for path in Path(pytest.__file__).parents[1].iterdir():
        if path.name.partition("-")[0] not in MISSING:
            (folder / "others" / path.name).symlink_to(path)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(f"{folder / 'others'}\n")


def test_messages_lead_from_a_wheel_to_roles(tmp_path):
    """The commands in the messages are run, and the model is downloaded, until it works."""
    release = tmp_path / "release"
    environment = tmp_path / "environment"
    (tmp_path / "work").mkdir()
    make_release(release, tmp_path / "work")
    make_environment(environment)
    variables = variables_without("ELMO_TASKS_", "PYTHON", "PIP")
    variables |= {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(release),
        "PIP_NO_COMPILE": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }
    variables["PATH"] = f"{environment / 'bin'}:{variables['PATH']}"

    def run(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True)

    installed = run("pip", "install", "--no-deps", *map(str, release.glob("elmo_tasks-*.whl")))
    assert installed.returncode == 0, installed.stderr
    messages: list[str] = []
    model = "srl"
    journey = run("python", "-c", JOURNEY, model)
    while journey.returncode != 0:
        message = journey.stderr.splitlines()[-1]
        assert message not in messages, journey.stderr
        messages.append(message)
        address = re.search(r"download (\S+),", message)
        if address:
            model = str(tmp_path / "srl.tar.gz")
            urlretrieve(address[1], model)
        else:
            commands = re.findall(r"pip install .*?(?=, then |; |$)", message)
            assert commands, journey.stderr
            for command in commands:
                process = run("bash", "-c", command)
                assert process.returncode == 0, (command, process.stderr)
        journey = run("python", "-c", JOURNEY, model)
    roles = "[('ARG0', 'Ann'), ('V', 'sold'), ('ARG1', 'the house')]"
    assert journey.stdout.splitlines()[-1] == roles
    expected = [
        "spacy is not installed",
        "allennlp_today is not installed",
        "the trained model 'srl' is not part of",
    ]
    for message, problem in zip(messages, expected, strict=True):
        assert problem in message, messages
