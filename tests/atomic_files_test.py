"""Tests of files that are there whole or not at all."""

import pytest

from elmo_tasks.atomic_files import atomic_file


class TestAtomicFile:
    def test_the_old_file_stays_until_the_new_one_is_whole(self, tmp_path):
        """Oracle: the content before and after the block."""
        path = tmp_path / "a"
        path.write_text("old")
        with atomic_file(path) as temporary:
            temporary.write_text("new")
            assert path.read_text() == "old"
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "new")]

    def test_an_error_leaves_nothing(self, tmp_path):
        """Oracle: the folder."""
        with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "a") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt
        assert not list(tmp_path.iterdir())
