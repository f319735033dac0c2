"""Tests of `python -m elmo_tasks`."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from elmo_tasks import __version__
from elmo_tasks.__main__ import main
from tests.embed_job.conftest import content_of_hdf5
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

    def test_an_error_of_several_lines_is_one_line(self, tmp_path, capsys, monkeypatch):
        """Oracle: the text by hand; an error as torch and Ray raise them. No version is looked up for it."""

        def fail(*args):
            raise RuntimeError("out of memory\n  on this\n\tmachine\n")

        monkeypatch.setattr("elmo_tasks.embed_job.job.summarize", fail)
        monkeypatch.setattr("importlib.metadata.version", fail)
        (tmp_path / "text.txt").write_text("a\n")
        assert main(["embed", str(tmp_path / "text.txt"), str(tmp_path / "out.h5"), "--bilm", str(TINY_BILM)]) == 1
        assert capsys.readouterr().err == "error: out of memory on this machine\n"

    def test_what_nobody_reads_is_no_error(self):
        """Oracle: the status that a shell reports after SIGPIPE, and nothing on stderr."""
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "elmo_tasks", "verify", str(TINY_BILM)]
        ended = subprocess.run(command, stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        assert (ended.returncode, ended.stderr) == (141, b"")

    def test_there_need_not_be_a_stdout(self, monkeypatch):
        """Oracle: the status, as of a process without a terminal."""
        monkeypatch.setattr(sys, "stdout", None)
        assert main(["verify", str(TINY_BILM)]) == 0

    def test_it_knows_its_version(self, capsys):
        """Oracle: the version of the package and of this interpreter, in one line; exit status 0."""
        with pytest.raises(SystemExit, match="0"):
            main(["--version"])
        python = ".".join(map(str, sys.version_info[:3]))
        expected = rf"elmo_tasks {re.escape(__version__)} \(Python {re.escape(python)}, torch \d+\.\S+\)\n"
        assert re.fullmatch(expected, capsys.readouterr().out)

    def test_an_interrupt_before_the_work_is_one_line(self, tmp_path, capsys, monkeypatch):
        """Oracle: by hand; Ctrl-C while the text is read."""

        def interrupted(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr("elmo_tasks.embed_job.job.summarize", interrupted)
        (tmp_path / "text.txt").write_text("a\n")
        assert main(["embed", str(tmp_path / "text.txt"), str(tmp_path / "out.h5"), "--bilm", str(TINY_BILM)]) == 130
        assert capsys.readouterr().err == "interrupted before anything was done: run the same command again\n"

    def test_an_interrupt_while_torch_is_imported_is_one_line(self):
        """Oracle: as above, with an import of torch in which Ctrl-C comes."""
        code = (
            "import runpy, sys\n"
            "class Interrupted:\n"
            "    def find_spec(self, name, *arguments):\n"
            "        if name == 'torch':\n"
            "            raise KeyboardInterrupt\n"
            "sys.meta_path.insert(0, Interrupted())\n"
            "sys.argv = ['elmo_tasks', 'verify', '.']\n"
            "runpy.run_module('elmo_tasks', run_name='__main__')\n"
        )
        ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
        expected = "interrupted before anything was done: run the same command again\n"
        assert (ended.returncode, ended.stderr) == (130, expected)

    @pytest.mark.slow
    @pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["one process", "two workers"])
    def test_after_an_interrupt_it_says_how_to_resume(self, tmp_path, workers):
        """
        Oracle: by hand: Ctrl-C in a terminal, SIGINT to all its processes; the file of an undisturbed job. A job that
        has ended before the signal, as on a busy machine, is run again.
        """
        (tmp_path / "text.txt").write_text("".join(f"{number} a b c\n" for number in range(600)))
        arguments = ["--bilm", str(TINY_BILM), "--part-lines", "3"]
        command = [sys.executable, "-m", "elmo_tasks", "embed", "text.txt", "out.h5", *arguments, *workers]
        for _ in range(5):
            status, errors = interrupted_with_a_part(command, tmp_path)
            if status != 0:
                break
            for file in tmp_path.glob("out.h5*"):
                file.unlink()
        assert status == 130
        assert errors == (
            "interrupted; what is done is kept in out.h5.parts: resume with the same command and --resume\n"
        )
        (tmp_path / "whole").mkdir()
        for name, resume in (("out.h5", ["--resume"]), ("whole/out.h5", [])):
            assert main(["embed", str(tmp_path / "text.txt"), str(tmp_path / name), *arguments, *resume]) == 0
        assert content_of_hdf5(tmp_path / "out.h5") == content_of_hdf5(tmp_path / "whole" / "out.h5")

    def test_without_a_command_it_lists_the_commands(self, capsys):
        """Oracle: argparse's exit status and its text."""
        with pytest.raises(SystemExit, match="2"):
            main([])
        assert "command" in capsys.readouterr().err


def interrupted_with_a_part(command: list[str], folder: Path) -> tuple[int, str]:
    """The exit status of a job that is interrupted once its first part is there, and what it wrote to stderr."""
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        deadline = time.monotonic() + 600
        while process.poll() is None and not list(folder.glob("out.h5.parts/part-*")):
            assert time.monotonic() < deadline, "the job does not come to its first part"
            time.sleep(0.002)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()
    return process.returncode, errors
