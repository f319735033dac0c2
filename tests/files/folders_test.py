"""Tests of the files of a folder."""

import glob
from pathlib import Path

from elmo_tasks.files.folders import files_below, matches


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
        broken = set(files_below(data, with_broken_links=True)) - set(files_below(data))
        assert broken == {data / "5.txt"}


class TestMatches:
    def test_what_is_above_a_linked_folder_is_where_the_link_leads(self, tmp_path: Path, monkeypatch):
        """Oracle: `glob.glob`, for a folder next to the link that would be meant if `link/..` were nothing."""
        for folder in ("real/deep/lm", "lm", "real/deep/in"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "real" / "deep" / "lm" / "right.txt").touch()
        (tmp_path / "lm" / "wrong.txt").touch()
        (tmp_path / "link").symlink_to(tmp_path / "real" / "deep" / "in")
        monkeypatch.chdir(tmp_path)
        assert matches("link/../lm/*.txt") == glob.glob("link/../lm/*.txt") == ["link/../lm/right.txt"]

    def test_a_path_has_one_name(self, tmp_path: Path, monkeypatch):
        """Oracle: by hand."""
        (tmp_path / "lm").mkdir()
        (tmp_path / "lm" / "a.txt").touch()
        monkeypatch.chdir(tmp_path)
        assert matches("./lm//*.txt") == ["lm/a.txt"]
        assert sorted(matches("lm/**")) == ["lm", "lm/a.txt"]
