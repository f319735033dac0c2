"""Tests of elmo_tasks.compat.placeholders."""

import importlib.util
import inspect
import json
import sys

import pytest

from elmo_tasks.compat import placeholders

WITHOUT_BOTH = """
import json, sys
sys.modules["torchvision"] = sys.modules["fairscale"] = None
import torch
from allennlp.data.image_loader import TorchImageLoader
from allennlp.nn.checkpoint import FairScaleCheckpointWrapper
from allennlp.nn.parallel import FairScaleFsdpAccelerator

accelerator = FairScaleFsdpAccelerator(local_rank=0, world_size=1, cuda_device=-1)
uses = {
    "torchvision": lambda: TorchImageLoader(image_backend="accimage"),
    "fairscale checkpoints": lambda: FairScaleCheckpointWrapper().wrap_module(torch.nn.Linear(1, 1)),
    "fairscale modules": lambda: accelerator.wrap_module(torch.nn.Linear(1, 1)),
    "fairscale models": lambda: accelerator.wrap_model(torch.nn.Linear(1, 1)),
}
errors = {}
for name, use in uses.items():
    try:
        use()
    except Exception as error:
        errors[name] = str(error)
print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def without_both(run_python) -> dict[str, str]:
    """The errors of AllenNLP's classes in an interpreter that has neither torchvision nor fairscale."""
    return json.loads(run_python(WITHOUT_BOTH))


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
    def test_allennlp_is_imported_without_it(self, without_both):
        """Oracle: an interpreter without torchvision; its use is an error with the remedy."""
        for words in ("needs the package 'torchvision'", "install the torchvision that belongs to your torch"):
            assert words in without_both["torchvision"]

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
    def test_allennlp_is_imported_without_it(self, without_both):
        """Oracle: an interpreter without fairscale; each use of it is an error with the remedy."""
        for use in ("fairscale checkpoints", "fairscale modules", "fairscale models"):
            for words in ("needs the package 'fairscale'", "pip install fairscale"):
                assert words in without_both[use]
