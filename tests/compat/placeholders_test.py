"""Tests of elmo_tasks.compat.placeholders."""

import importlib.util
import inspect
import sys

import pytest

from elmo_tasks.compat.placeholders import replace_missing_packages


@pytest.fixture
def broken_torchvision(tmp_path, monkeypatch):
    """A torchvision that fails like one built for a different torch."""
    (tmp_path / "torchvision").mkdir()
    message = "operator torchvision::nms does not exist"
    (tmp_path / "torchvision" / "__init__.py").write_text(f"raise RuntimeError({message!r})\n")
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    yield message
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]


class TestReplaceMissingPackages:
    def test_allennlp_starts_without_them(self, start):
        """Using one is an error that names the package."""
        for use in ("fairscale checkpoints", "fairscale modules", "fairscale models"):
            assert "fairscale cannot be imported" in start["errors"][use]

    def test_tools_that_walk_through_all_modules_work(self, broken_torchvision):
        with replace_missing_packages(""):
            import torchvision
        assert importlib.util.find_spec("torchvision") is not None
        assert inspect.getmodule(type(self)) is sys.modules[__name__]
        assert not hasattr(torchvision, "__file__")

    def test_a_working_torchvision_is_kept(self, tmp_path, monkeypatch):
        package = tmp_path / "torchvision" / "ops"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").write_text("real = True\n")
        (package / "__init__.py").write_text("")
        (package / "boxes.py").write_text("")
        monkeypatch.syspath_prepend(tmp_path)
        names = {name for name in sys.modules if name.split(".")[0] == "torchvision"}
        for name in names:
            monkeypatch.delitem(sys.modules, name)
        with replace_missing_packages(""):
            import torchvision
        assert torchvision.real
        for name in ("torchvision", "torchvision.ops", "torchvision.ops.boxes"):
            monkeypatch.delitem(sys.modules, name)

    def test_an_address_names_the_package_that_it_needs(self, run_python):
        code = "import sys; sys.modules['boto3'] = sys.modules['google.cloud.storage'] = None\n"
        code += "import torch, allennlp.common.file_utils as files\n"
        code += "for address in ('s3://a/b', 'gs://a/b'):\n"
        code += "    try: files.cached_path(address)\n"
        code += "    except ImportError as error: print(error)\n"
        s3, gs = run_python(code).splitlines()
        assert "the package boto3 cannot" in s3 and "the package google-cloud-storage cannot" in gs


class TestReplacePkgResources:
    def test_a_module_finds_its_files(self, run_python, tmp_path):
        (tmp_path / "rouge").mkdir()
        code = "import pkg_resources\nprint(pkg_resources.resource_filename(__name__, 'words.txt'))\n"
        (tmp_path / "rouge" / "__init__.py").write_text("from rouge import rouge")
        (tmp_path / "rouge" / "rouge.py").write_text(code)
        printed = run_python("import torch, rouge", path=tmp_path)
        assert printed.strip() == str(tmp_path / "rouge" / "words.txt")
