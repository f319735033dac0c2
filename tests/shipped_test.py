"""Tests of the folders that ship."""

from elmo_tasks import shipped
from tests.paths import CHECKOUT


class TestShipped:
    def test_a_checkout_has_its_own(self):
        """Oracle: the folders of this checkout by hand, the first of which is in the package."""
        folders = (shipped.PRETRAINED, shipped.FIXTURES, shipped.TRAINING_CONFIGS)
        assert folders == tuple(CHECKOUT / name for name in ("elmo_tasks/pretrained", "fixtures", "training_configs"))

    def test_those_in_the_package_take_precedence(self, tmp_path, monkeypatch):
        """Oracle: by hand: a folder next to the package, and then one in it, as a wheel installs it."""
        monkeypatch.setattr(shipped, "_PACKAGE", tmp_path / "package")
        (tmp_path / "fixtures").mkdir()
        assert shipped._folder("fixtures") == tmp_path / "fixtures"
        (tmp_path / "package" / "fixtures").mkdir(parents=True)
        assert shipped._folder("fixtures") == tmp_path / "package" / "fixtures"
