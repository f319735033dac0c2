"""Tests of the files of a folder."""

from pathlib import Path

from elmo_tasks.files.folders import files_below


class TestFilesBelow:
    def test_links_to_folders_are_followed(self, tmp_path: Path):
        """Oracle: by hand; a folder is read once, whatever leads to it, and a link to itself ends."""
        data, other = tmp_path / "data", tmp_path / "other"
        for file in (data / "a" / "b" / "1.txt", data / "2.txt", other / "deep" / "3.txt"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        (data / "linked").symlink_to(other)
        (data / "twice").symlink_to(other / "deep")
        (data / "a" / "above").symlink_to(data)
        (data / "4.txt").symlink_to(other / "deep" / "3.txt")
        (data / "5.txt").symlink_to(tmp_path / "nothing")
        # It would come first in the order of the names.
        (data / "0").symlink_to(data / "a" / "b")
        found = sorted(path.relative_to(data).as_posix() for path in files_below(data))
        assert found == ["2.txt", "4.txt", "a/b/1.txt", "linked/deep/3.txt"]
        assert sorted(files_below(data / "linked")) == [data / "linked" / "deep" / "3.txt"]
        assert list(files_below(tmp_path / "nothing")) == []
