"""Tests of files that are written whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from elmo_tasks.files.atomic_files import (
    TEMPORARY,
    atomic_file,
    atomic_folder,
    check_not_input,
    naming_errors,
    remove_leftovers,
)


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

    def test_two_processes_do_not_write_to_the_same_file(self, tmp_path):
        """Oracle: the names of two blocks; the file is that of the block that ends last."""
        with atomic_file(tmp_path / "a") as outer:
            with atomic_file(tmp_path / "a") as inner:
                assert inner != outer
                inner.write_bytes(b"inner")
            outer.write_bytes(b"outer")
        assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("a", b"outer")]

    def test_what_a_killed_process_left_is_overwritten_where_no_other_writes(self, tmp_path):
        """Oracle: the folder; the file that was left is longer than the new one."""
        (tmp_path / f"{TEMPORARY}a").write_text("half of a long file")
        with atomic_file(tmp_path / "a", exclusive=True) as temporary:
            temporary.write_text("whole")
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "whole")]

    def test_the_file_may_be_written_in_another_folder(self, tmp_path):
        """Oracle: where it is inside the block and after it."""
        (tmp_path / "parts").mkdir()
        with atomic_file(tmp_path / "a", folder=tmp_path / "parts") as temporary:
            assert temporary.parent == tmp_path / "parts"
            temporary.touch()
        assert (tmp_path / "a").exists() and not list((tmp_path / "parts").iterdir())

    @pytest.mark.parametrize("name", ["a" * 251 + ".npz", "語" * 83 + ".npz"])
    def test_a_name_may_be_as_long_as_the_file_system_allows(self, tmp_path, name):
        """Oracle: the folder, after 255 or 253 bytes; libraries see the suffix inside the block."""
        with atomic_file(tmp_path / name) as temporary:
            assert temporary.suffix == ".npz"
            temporary.write_text("new")
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(name, "new")]


class TestCheckNotInput:
    def test_a_file_by_any_name_is_one_file(self, tmp_path):
        """Oracle: by hand: the same name, a link, and a device; another file, and one that is not there yet."""
        (tmp_path / "text").touch()
        (tmp_path / "link").symlink_to(tmp_path / "text")
        for output, given in (("text", "text"), ("link", "text"), ("text", "link")):
            with pytest.raises(ValueError, match="must be another file than what is read"):
                check_not_input(tmp_path / output, tmp_path / "other", tmp_path / given)
        check_not_input(tmp_path / "text", tmp_path / "other")
        check_not_input(tmp_path / "new", tmp_path / "text")
        check_not_input(Path("/dev/null"), "/dev/null")


class TestRemoveLeftovers:
    def test_what_a_killed_process_left_is_removed_after_a_day(self, tmp_path):
        """Oracle: the folder, with files of two days and of now, of this name and others; of the user's own no more."""
        with atomic_file(tmp_path / "a") as temporary:
            left, other = temporary.name, temporary.with_name(f"{temporary.name[:-1]}b").name
            temporary.touch()
        names = [left, left.replace("_tmp-", "_tmp-0"), other, "_tmp-a", "a", f"{left}.sha256", "_tmp-mine-a"]
        for name in names:
            (tmp_path / name).touch()
            os.utime(tmp_path / name, (0, 0))
        new = f"{TEMPORARY}{'0' * 32}-a"
        (tmp_path / new).touch()
        remove_leftovers(tmp_path / "a")
        assert {file.name for file in tmp_path.iterdir()} == {*names[1:], new}


class TestFullDisk:
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
    def test_the_file_that_will_be_is_named(self, tmp_path, number):
        """Oracle: the message of a file, of a folder, and of what is written without either; nothing is left."""
        blocks = [atomic_file(tmp_path / "a"), atomic_folder(tmp_path / "a", ()), naming_errors(tmp_path / "a")]
        for block in blocks:
            with pytest.raises(OSError, match=rf": '{tmp_path}/a'") as raised, block:
                raise OSError(number, os.strerror(number))
            assert raised.value.errno == number
        assert not list(tmp_path.iterdir())

    def test_other_errors_stay_as_they_are(self, tmp_path):
        """Oracle: the error itself: one of reading, and one that has a name."""
        for error in (OSError(errno.EIO, "no"), OSError(errno.ENOSPC, "no", "other"), ValueError("no")):
            with pytest.raises(type(error)) as raised, naming_errors(tmp_path / "a"):
                raise error
            assert raised.value is error


class TestAtomicFolder:
    def files(self, folder):
        return {file.name: file.read_text() for file in folder.iterdir()}

    def test_the_old_folder_stays_until_the_new_one_is_whole(self, tmp_path):
        """Oracle: the files before and after the block."""
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "one").write_text("old")
        with atomic_folder(tmp_path / "a", {"one", "two"}) as temporary:
            (temporary / "two").write_text("new")
            assert self.files(tmp_path / "a") == {"one": "old"}
        assert self.files(tmp_path / "a") == {"two": "new"}
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_it_may_be_the_folder_of_the_process(self, tmp_path, monkeypatch):
        """Oracle: its files."""
        (tmp_path / "a").mkdir()
        monkeypatch.chdir(tmp_path / "a")
        with atomic_folder(Path("."), ()) as temporary:
            (temporary / "one").write_text("new")
        assert self.files(tmp_path / "a") == {"one": "new"}

    def test_an_error_leaves_nothing(self, tmp_path):
        """Oracle: the folder around it."""
        with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "below" / "a", ()) as temporary:
            (temporary / "two").write_text("half")
            raise KeyboardInterrupt
        assert not list((tmp_path / "below").iterdir())

    def test_files_that_are_not_ours_are_not_replaced(self, tmp_path):
        """Oracle: the messages, and the files."""
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "mine").write_text("mine")
        with pytest.raises(FileExistsError, match="but holds mine"), atomic_folder(tmp_path / "a", {"one"}):
            pass
        (tmp_path / "file").write_text("mine")
        (tmp_path / "link").symlink_to(tmp_path / "a")
        for name in ("file", "link"):
            with pytest.raises(FileExistsError, match="must be a folder"), atomic_folder(tmp_path / name, {"mine"}):
                pass
        assert self.files(tmp_path / "a") == {"mine": "mine"}

    def test_what_a_killed_process_has_moved_away_is_put_back(self, tmp_path):
        """Oracle: the older files after an error of the next call, and no others of that name after its success."""
        older = tmp_path / f"{TEMPORARY}{'0' * 32}-a.older"
        for _ in range(2):
            older.mkdir()
            (older / "one").write_text("old")
            with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "a", {"one"}):
                raise KeyboardInterrupt
            assert self.files(tmp_path / "a") == {"one": "old"} and not older.exists()
        with atomic_folder(tmp_path / "a", {"one"}) as temporary:
            (temporary / "one").write_text("new")
        assert self.files(tmp_path / "a") == {"one": "new"}
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_the_old_folder_is_put_back_if_the_new_one_cannot_take_its_place(self, tmp_path, monkeypatch):
        """Oracle: the files after an error of the second of two renames."""
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "one").write_text("old")
        replace, calls = os.replace, []

        def fail_once(source, target):
            calls.append(source)
            if len(calls) == 2:
                raise OSError("no")
            replace(source, target)

        monkeypatch.setattr(os, "replace", fail_once)
        with pytest.raises(OSError, match="no"), atomic_folder(tmp_path / "a", {"one"}) as temporary:
            (temporary / "one").write_text("new")
        assert self.files(tmp_path / "a") == {"one": "old"}
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
