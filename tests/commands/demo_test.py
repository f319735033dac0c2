"""Tests of `allennlp elmo-demo`: what it refuses before it serves."""

import socket
from importlib import util
from pathlib import Path

import pytest

from elmo_tasks.analysis import index_text
from tests.paths import SHIPPED_BILM, TINY_BILM

pytest.importorskip("gradio", reason="Gradio is not installed: `pip install 'elmo_tasks[demo]'`")


class TestShowDemo:
    def test_what_is_missing_is_named_in_a_line(self, error_of, tmp_path: Path):
        """Oracle: the messages, for an archive, an index and a biLM."""
        assert "but there is nothing" in error_of("elmo-demo", tmp_path / "model.tar.gz", "--port", 0)
        assert "there must be an index" in error_of("elmo-demo", "--index", tmp_path / "none", "--port", 0)
        assert "is neither" in error_of("elmo-demo", "--bilm", tmp_path / "none", "--port", 0)
        assert "language must be a code" in error_of("elmo-demo", "--language", "xyz", "--port", 0)

    def test_an_index_of_another_bilm_is_refused(self, error_of, tmp_path: Path):
        """Oracle: the message."""
        (tmp_path / "text.txt").write_text("They play .\n")
        index_text(str(tmp_path / "text.txt"), tmp_path / "index", str(TINY_BILM))
        line = error_of("elmo-demo", "--index", tmp_path / "index", "--bilm", SHIPPED_BILM, "--port", 0)
        assert "must have the biLM of its index" in line and "name the biLM of the index (--bilm)" in line

    def test_a_port_in_use_is_refused_before_anything_is_loaded(self, error_of):
        """Oracle: the message, and not that of the archive."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            line = error_of("elmo-demo", "none.tar.gz", "--port", taken.getsockname()[1])
        assert "a free port" in line

    def test_without_gradio_it_says_what_to_install(self, error_of, monkeypatch: pytest.MonkeyPatch):
        """Oracle: the message."""
        found = util.find_spec
        monkeypatch.setattr(util, "find_spec", lambda name, *rest: None if name == "gradio" else found(name, *rest))
        assert "pip install 'elmo_tasks[demo]'" in error_of("elmo-demo")
