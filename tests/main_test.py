"""Tests of `python -m elmo_tasks`."""

import pytest

from elmo_tasks.__main__ import main
from tests.paths import TINY_BILM


class TestMain:
    def test_it_embeds_a_text(self, tmp_path, fixtures_root, capsys):
        """Oracle: the file and the line that is printed."""
        (tmp_path / "text.txt").write_text("a b\n\nc\n")
        files = [str(tmp_path / name) for name in ("text.txt", "out.npz")]
        assert main(["embed", *files, "--bilm", str(TINY_BILM)]) == 0
        assert "out.npz: 3 lines" in capsys.readouterr().out and (tmp_path / "out.npz").exists()

    @pytest.mark.parametrize("name", ["none.txt", "broken.txt"])
    def test_an_error_is_one_line(self, tmp_path, capsys, name):
        """Oracle: the exit status; the line names the file."""
        (tmp_path / "broken.txt").write_bytes(b"\xff\n")
        assert main(["embed", str(tmp_path / name), str(tmp_path / "out.h5")]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ") and name in line

    def test_without_a_command_it_says_which_there_are(self, capsys):
        """Oracle: argparse's exit status and its text."""
        with pytest.raises(SystemExit, match="2"):
            main([])
        assert "command" in capsys.readouterr().err
