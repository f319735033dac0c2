"""Tests of elmo_tasks.compat.package_fixes.placeholders."""

import importlib.util
import inspect
import sys

import pytest

from elmo_tasks.compat.package_fixes import placeholders


@pytest.fixture
def broken_torchvision(tmp_path, monkeypatch):
    """A torchvision that fails as one does that was built for another torch."""
    (tmp_path / "torchvision").mkdir()
    message = "operator torchvision::nms does not exist"
    (tmp_path / "torchvision" / "__init__.py").write_text(f"raise RuntimeError({message!r})\n")
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    yield message
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]


class TestTorchvision:
    def test_allennlp_is_imported_without_it(self, start):
        """Oracle: an interpreter without torchvision; its use is an error with the remedy."""
        for words in ("needs the package 'torchvision'", "install the torchvision that belongs to your torch"):
            assert words in start["errors"]["torchvision"]

    def test_a_broken_one_is_replaced_and_its_error_kept(self, broken_torchvision):
        """Oracle: the words of its own error, and a remedy."""
        with placeholders.import_or_replace_torchvision():
            import torchvision
            import torchvision.ops.boxes as box_ops
        for use in (lambda: torchvision.models, lambda: box_ops.nms, lambda: torchvision.io.read_image):
            with pytest.raises(AttributeError, match=broken_torchvision):
                use()
        with pytest.raises(AttributeError, match="install the torchvision that belongs to your torch"):
            torchvision.set_image_backend("PIL")

    def test_tools_that_walk_through_all_modules_work(self, broken_torchvision):
        """Oracle: the standard library."""
        with placeholders.import_or_replace_torchvision():
            import torchvision
        assert importlib.util.find_spec("torchvision") is not None
        assert inspect.getmodule(type(self)) is sys.modules[__name__]
        assert not hasattr(torchvision, "__file__")

    def test_a_working_one_is_kept(self, tmp_path, monkeypatch):
        """Oracle: the module itself."""
        package = tmp_path / "torchvision" / "ops"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").write_text("real = True\n")
        (package / "__init__.py").write_text("")
        (package / "boxes.py").write_text("")
        monkeypatch.syspath_prepend(tmp_path)
        names = {name for name in sys.modules if name.split(".")[0] == "torchvision"}
        for name in names:
            monkeypatch.delitem(sys.modules, name)
        with placeholders.import_or_replace_torchvision():
            import torchvision
        assert torchvision.real
        for name in ("torchvision", "torchvision.ops", "torchvision.ops.boxes"):
            monkeypatch.delitem(sys.modules, name)


class TestFairscale:
    def test_allennlp_is_imported_without_it(self, start):
        """Oracle: an interpreter without fairscale; each use of it is an error with the remedy."""
        for use in ("fairscale checkpoints", "fairscale modules", "fairscale models"):
            for words in ("needs the package 'fairscale'", "pip install fairscale"):
                assert words in start["errors"][use]
