from pathlib import Path

import pytest

from elmo_tasks.files.atomic_files import atomic_file, atomic_folder, check_not_input


@pytest.mark.parametrize("begin", [atomic_file, atomic_folder])
def test_an_error_leaves_nothing(tmp_path, begin):
    with pytest.raises(KeyboardInterrupt), begin(tmp_path / "a") as temporary:
        (temporary / "b" if temporary.is_dir() else temporary).touch()
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


class TestAtomicFile:
    def test_the_old_file_is_kept_until_the_new_one_is_whole(self, tmp_path):
        path = tmp_path / "a"
        path.write_text("old")
        with atomic_file(path) as temporary:
            temporary.write_text("new")
            assert path.read_text() == "old"
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "new")]


class TestAtomicFolder:
    def test_a_folder_appears_only_when_complete(self, tmp_path):
        with atomic_folder(tmp_path / "new" / "folder") as temporary:
            (temporary / "a").write_text("text")
            assert not (tmp_path / "new" / "folder").exists()
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["folder"]
        assert (tmp_path / "new" / "folder" / "a").read_text() == "text"

    def test_what_a_killed_process_left_is_removed(self, tmp_path):
        killed = atomic_folder(tmp_path / "folder")
        (killed.__enter__() / "half").touch()
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "a").touch()
        assert [path.name for path in tmp_path.rglob("*")] == ["folder", "a"]

    def test_only_a_folder_of_replaceable_files_is_replaced(self, tmp_path):
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "a").touch()
        with pytest.raises(FileExistsError), atomic_folder(tmp_path / "folder", {"b"}):
            pass
        assert [path.name for path in (tmp_path / "folder").iterdir()] == ["a"]
        with atomic_folder(tmp_path / "folder", {"a", "b"}) as temporary:
            (temporary / "b").touch()
        assert [path.name for path in (tmp_path / "folder").iterdir()] == ["b"]


class TestCheckNotInput:
    def test_a_file_is_recognised_under_any_name(self, tmp_path):
        (tmp_path / "text").touch()
        (tmp_path / "link").symlink_to(tmp_path / "text")
        for output, given in (("text", "text"), ("link", "text"), ("text", "link")):
            with pytest.raises(ValueError):
                check_not_input(tmp_path / output, tmp_path / "other", tmp_path / given)
        check_not_input(tmp_path / "text", tmp_path / "other")
        check_not_input(tmp_path / "new", tmp_path / "text")
        # The same terminal may be input and output.
        check_not_input(Path("/dev/null"), "/dev/null")
