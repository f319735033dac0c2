"""Tests of `python -m elmo_tasks download`."""

import re

import pytest

from elmo_tasks.__main__ import main
from elmo_tasks.vectors import download
from elmo_tasks.vectors.pretrained import NAMED_BILMS, NamedBilm
from tests.paths import TINY_BILM


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class TestRun:
    def test_it_prints_the_folder_of_each(self, home, monkeypatch, capsys):
        """Oracle: the folders, and their files."""
        monkeypatch.setattr(download, "_SCHEMES", ("file",))
        monkeypatch.setitem(NAMED_BILMS, "published", NamedBilm(url=f"{TINY_BILM.as_uri()}/"))
        assert main(["download", "published", "small-open"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"published: {home}/published" and lines[1].startswith("small-open: /")
        assert (home / "published" / "weights.hdf5").read_bytes() == (TINY_BILM / "weights.hdf5").read_bytes()

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("efml-kr", r"must be one of small-open, .*efml-ko, .*, but is 'efml-kr'"),
            ("./folder", r"but is '\./folder'"),
        ],
    )
    def test_an_unknown_name_lists_all(self, home, capsys, name, message):
        """Oracle: the line; nothing is downloaded before all names are known."""
        assert main(["download", "original", name]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert re.search(message, line)
        assert not home.exists()
