"""Tests of `python -m elmo_tasks`."""

import filecmp
import os
import subprocess
import sys

import pytest
from allennlp.common import Params

from elmo_tasks import __version__
from elmo_tasks.__main__ import main
from tests.paths import SHIPPED_BILM, TINY_BILM


class TestMain:
    def test_it_embeds_a_text(self, tmp_path):
        (tmp_path / "text.txt").write_text("a b\n\nc\n")
        files = [str(tmp_path / name) for name in ("text.txt", "out.h5")]
        assert main(["embed", *files, "--bilm", str(TINY_BILM)]) == 0
        assert (tmp_path / "out.h5").exists()

    @pytest.mark.parametrize("name", ["none.txt", "broken.txt"])
    def test_an_error_is_one_line_that_names_the_file(self, tmp_path, capsys, name):
        (tmp_path / "broken.txt").write_bytes(b"\xff\n")
        assert main(["embed", str(tmp_path / name), str(tmp_path / "out.h5")]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert name in line

    def test_output_that_nobody_reads_is_not_an_error(self):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "elmo_tasks", "download", "small-open"]
        ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=120)
        os.close(write)
        assert (ended.returncode, ended.stderr) == (141, b"")

    def test_it_prints_its_version(self, capsys):
        with pytest.raises(SystemExit, match="0"):
            main(["--version"])
        assert capsys.readouterr().out.startswith(f"elmo_tasks {__version__} (Python 3.")


class TestDownload:
    def test_it_prints_the_folder(self, capsys):
        assert main(["download", "small-open"]) == 0
        assert capsys.readouterr().out == f"small-open: {SHIPPED_BILM}\n"

    def test_an_unknown_name_is_an_error(self, capsys, monkeypatch, tmp_path):
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path))
        assert main(["download", "smal"]) == 1
        assert "smal" in capsys.readouterr().err


class TestConfigs:
    def test_the_copies_are_whole_and_can_be_evaluated(self, environment, training_configs, tmp_path):
        folder = tmp_path / "new" / "configs"
        assert main(["configs", str(folder)]) == 0
        names = {path.relative_to(training_configs) for path in training_configs.rglob("*.*sonnet")}
        assert {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} == names
        assert filecmp.cmpfiles(training_configs, folder, names, shallow=False)[1:] == ([], [])
        copied, shipped = (Params.from_file(root / "ner_elmo.jsonnet") for root in (folder, training_configs))
        assert copied.as_dict(quiet=True) == shipped.as_dict(quiet=True)

    def test_existing_files_are_overwritten_only_with_force(self, tmp_path):
        config = tmp_path / "ner.jsonnet"
        config.write_text("changed")
        assert main(["configs", str(tmp_path)]) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["ner.jsonnet"] and config.read_text() == "changed"
        assert main(["configs", str(tmp_path), "--force"]) == 0
        assert config.read_text() != "changed"
