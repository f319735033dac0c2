"""Tests of files that commands write."""

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
