import importlib.util
import inspect
import sys

import pytest

from allennlp_today.repairs.placeholders import replace_missing_packages


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


# Regardless of the version of setuptools.
ROUGE = """
import sys
import allennlp_today
sys.modules["pkg_resources"] = None
sys.path.insert(0, {folder!r})
try:
    import rouge
except ModuleNotFoundError as error:
    print(error.name)
"""


class TestReplaceMissingPackages:
    def test_allennlp_starts_without_them(self, start):
        """Using one is an error that names the package."""
        assert len(start["errors"]) == 4
        for use, message in start["errors"].items():
            assert f"the package {use.partition(',')[0]} cannot be imported" in message

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


class TestReplacePkgResources:
    def test_a_module_finds_its_files_unless_the_fix_is_switched_off(
        self, run_python, tmp_path, monkeypatch
    ):
        (tmp_path / "rouge").mkdir()
        code = (
            "import pkg_resources\nprint(pkg_resources.resource_filename(__name__, 'words.txt'))\n"
        )
        (tmp_path / "rouge" / "__init__.py").write_text("from rouge import rouge")
        (tmp_path / "rouge" / "rouge.py").write_text(code)
        code = ROUGE.format(folder=str(tmp_path))
        assert run_python(code).strip() == str(tmp_path / "rouge" / "words.txt")
        monkeypatch.setenv("ALLENNLP_TODAY_WITHOUT", "replace_pkg_resources,defer_imports")
        assert run_python(code).strip() == "pkg_resources"
