"""Tests of elmo_tasks.compat.versions."""

import json

from tests.compat.packages import write_package

IMPORT_TWICE = """
import importlib, json, torch
def attempt(package):
    try:
        importlib.import_module(package)
    except ImportError as error:
        return str(error)
print(json.dumps([attempt(package) for package in ("allennlp", "allennlp", "allennlp_models")]))
"""


class TestVersions:
    def test_another_version_is_an_error_when_it_is_imported_and_not_before(self, run_python, tmp_path):
        """Oracle: the message; packages of other versions, found first; torch is imported before them."""
        write_package(tmp_path, "allennlp", "2.9.3")
        write_package(tmp_path, "allennlp_models", "2.9.0")
        first, second, models = json.loads(run_python(IMPORT_TWICE, path=tmp_path))
        assert first is not None and first == second
        for words in ("allennlp 2.10.1", "installed version is 2.9.3", "pip install --no-deps allennlp==2.10.1"):
            assert words in first
        for words in ("allennlp-models 2.10.1", "installed version is 2.9.0", "allennlp-models==2.10.1"):
            assert words in models

    def test_the_right_version_is_accepted(self, run_python, tmp_path):
        """Oracle: no message."""
        write_package(tmp_path, "allennlp", "2.10.1")
        write_package(tmp_path, "allennlp_models", "2.10.1")
        assert json.loads(run_python(IMPORT_TWICE, path=tmp_path)) == [None, None, None]
