"""Tests of files that commands write."""

import os
from pathlib import Path

import pytest

from elmo_tasks.commands.outputs import output_file


class TestOutputFile:
    def test_the_folder_is_created_and_the_file_is_whole(self, tmp_path):
        """Oracle: the file after the block, and its absence inside."""
        path = tmp_path / "a" / "b" / "c.txt"
        with output_file(path) as file:
            file.write_text("text")
            assert not path.exists()
        assert path.read_text() == "text"
        assert list(path.parent.iterdir()) == [path]

    def test_after_an_error_the_earlier_file_stays(self, tmp_path):
        """Oracle: its content; nothing else in the folder."""
        path = tmp_path / "c.txt"
        path.write_text("before")
        with pytest.raises(ZeroDivisionError), output_file(path) as file:
            file.write_text("half")
            raise ZeroDivisionError
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("c.txt", "before")]

    def test_a_folder_is_refused(self, tmp_path):
        """Oracle: the message names it, and the remedy; the block is not run."""
        with pytest.raises(IsADirectoryError, match=rf"'{tmp_path}' is a folder: name a file in it"):
            with output_file(tmp_path):
                pytest.fail("the block was run")

    def test_a_device_is_written_to_and_stays(self, tmp_path, capfd):
        """Oracle: what arrives on stdout, and through a pipe; the pipe is still one."""
        with output_file(Path("/dev/stdout")) as file:
            file.write_text("text")
        assert capfd.readouterr().out == "text"
        os.mkfifo(tmp_path / "pipe")
        reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        with output_file(tmp_path / "pipe") as file:
            file.write_text("text")
        assert os.read(reader, 10) == b"text" and (tmp_path / "pipe").is_fifo()
        os.close(reader)

    def test_a_full_disk_is_named(self):
        """Oracle: the message; the device is still one."""
        with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: '/dev/full'"):
            with output_file(Path("/dev/full")) as file:
                file.write_text("text")
        assert Path("/dev/full").is_char_device()
