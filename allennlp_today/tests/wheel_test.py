"""Tests of what is installed."""

import zipfile
from pathlib import Path

import pytest


class TestHook:
    @pytest.mark.parametrize("kind", ["wheel", "editable"])
    def test_the_module_that_torch_imports_is_always_installed(self, tmp_path, monkeypatch, kind):
        """An editable installation has only a path to the package, which may be moved."""
        backend = pytest.importorskip("hatchling.build")
        monkeypatch.chdir(Path(__file__).parents[1])
        wheel = zipfile.ZipFile(tmp_path / getattr(backend, f"build_{kind}")(str(tmp_path)))
        names = wheel.namelist()
        assert "allennlp_today_hook.py" in names
        assert ("allennlp_today/trust/loader.py" in names) == (kind == "wheel")
        (entry_points,) = [name for name in names if name.endswith("dist-info/entry_points.txt")]
        assert b"[torch.backends]\nallennlp_today = allennlp_today_hook:install" in wheel.read(
            entry_points
        )
