"""Tests of elmo_tasks.compat.startup.versions."""

import json

import pytest

from tests.compat.packages import write_package, write_torch

# In each folder in turn, and in each twice, as the error must come back.
IMPORT_TWICE = """
import importlib, json, sys, torch
def attempt(package):
    try:
        importlib.import_module(package)
    except ImportError as error:
        return str(error)
found = []
for folder in FOLDERS:
    sys.path.insert(0, folder)
    found.append([attempt(package) for package in ("allennlp", "allennlp", "allennlp_models")])
    sys.path.remove(folder)
    for name in [name for name in sys.modules if name.startswith("allennlp")]:
        del sys.modules[name]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def attempts(run_python, tmp_path_factory) -> list[list[str | None]]:
    """The errors of imports in an interpreter that finds packages of other versions first, and then the right ones."""
    folders, torch = [], tmp_path_factory.mktemp("torch")
    write_torch(torch)
    for allennlp, models in (("2.9.3", "2.9.0"), ("2.10.1", "2.10.1")):
        folders.append(tmp_path_factory.mktemp("packages"))
        write_package(folders[-1], "allennlp", allennlp)
        write_package(folders[-1], "allennlp_models", models)
    return json.loads(run_python(f"FOLDERS = {[str(folder) for folder in folders]}\n{IMPORT_TWICE}", path=torch))


class TestVersions:
    def test_another_version_is_an_error_when_it_is_imported_and_not_before(self, attempts):
        """Oracle: the message; packages of other versions, found first; torch is imported before them."""
        first, second, models = attempts[0]
        assert first is not None and first == second
        for words in ("allennlp 2.10.1", "installed version is 2.9.3", "pip install --no-deps allennlp==2.10.1"):
            assert words in first
        for words in ("allennlp-models 2.10.1", "installed version is 2.9.0", "allennlp-models==2.10.1"):
            assert words in models

    def test_the_right_version_is_accepted(self, attempts):
        """Oracle: no message."""
        assert attempts[1] == [None, None, None]
