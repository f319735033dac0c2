"""Tests of the layout of corpora, with small imitations of their files."""

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from elmo_tasks.public_data import Corpus, PublicFile, fetch
from tests.public_data.server import Handler, serving


def zipped(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


FILES = {
    "/trees.zip": zipped({"trees/train.txt": "(3 good)\n", "../../evil.txt": "no", "trees/README": "no"}),
    "/dev.txt": b"(1 bad)\n",
    "/damaged.zip": zipped({"trees/train.txt": "(3 good)\n"})[:-30],
}


@pytest.fixture
def server() -> Iterator[str]:
    with serving(FILES) as address:
        yield address


def corpus(server: str, archive: str = "trees.zip", member: str = "trees/train.txt", **options) -> Corpus:
    files = (
        PublicFile(f"{server}/{archive}", members={member: "sst/train.txt"}, **options),
        PublicFile(f"{server}/dev.txt", "sst/dev.txt"),
    )
    return Corpus("trees", files, "free")


class TestFetch:
    def test_files_are_where_configs_look_for_them(self, server, tmp_path):
        """Oracle: the content of the imitations; of an archive only the members that were asked for."""
        found = fetch(corpus(server), tmp_path / "data")
        assert found == [tmp_path / "data" / "sst" / name for name in ("train.txt", "dev.txt")]
        assert [path.read_text() for path in found] == ["(3 good)\n", "(1 bad)\n"]
        texts = [
            path.name for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".sha256", ".lock")
        ]
        assert sorted(texts) == ["dev.txt", "train.txt"]

    def test_what_is_there_is_not_downloaded_again(self, server, tmp_path):
        """Oracle: what the server was asked for; one file of two that is missing is downloaded alone."""
        fetch(corpus(server), tmp_path)
        (tmp_path / "sst" / "dev.txt").unlink()
        Handler.asked.clear()
        fetch(corpus(server), tmp_path)
        assert [path for path, _ in Handler.asked] == ["/dev.txt"]

    def test_a_file_that_has_changed_is_named(self, server, tmp_path):
        """Oracle: the checksum that was noted when it came."""
        fetch(corpus(server), tmp_path)
        (tmp_path / "sst" / "dev.txt").write_text("(2 other)\n")
        with pytest.raises(ValueError, match=r"sst/dev\.txt is damaged or was replaced"):
            fetch(corpus(server), tmp_path)

    @pytest.mark.parametrize("name", ["train.txt.sha256", "train.txt"])
    def test_the_same_command_resumes_after_a_kill(self, server, tmp_path, monkeypatch, name):
        """Oracle: the files, and none of half a file; a kill before one of them is there leaves what was written."""
        replace = os.replace

        def killed(source, target):
            if Path(target).name == name:
                raise KeyboardInterrupt
            replace(source, target)

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(os, "replace", killed)
            patched.setattr(Path, "unlink", Mock())
            fetch(corpus(server), tmp_path)
        assert not (tmp_path / "sst" / "train.txt").exists()
        fetch(corpus(server), tmp_path)
        texts = {path.name for path in (tmp_path / "sst").iterdir() if path.suffix == ".txt"}
        assert texts == {"train.txt", "dev.txt"}

    def test_a_file_of_another_is_not_replaced(self, server, tmp_path):
        """Oracle: its content stays."""
        (tmp_path / "sst").mkdir()
        (tmp_path / "sst" / "dev.txt").write_text("mine")
        with pytest.raises(FileExistsError, match=r"sst/dev\.txt must be a file that this command has put there"):
            fetch(corpus(server), tmp_path)
        assert (tmp_path / "sst" / "dev.txt").read_text() == "mine"

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"archive": "damaged.zip"}, "must be a zip archive that can be read"),
            ({"member": "trees/none.txt"}, "must have trees/none.txt, but does not"),
            ({"n_bytes": 5, "max_bytes": 4}, "must have at most 5 bytes"),
        ],
        ids=lambda value: "" if isinstance(value, str) else "-".join(value),
    )
    def test_another_archive_is_refused(self, server, tmp_path, wrong, message):
        """Oracle: the message; no file is laid out."""
        with pytest.raises((ValueError, ConnectionError), match=message):
            fetch(corpus(server, **wrong), tmp_path)
        assert not (tmp_path / "sst" / "train.txt").exists()

    def test_members_have_a_limit(self, server, tmp_path):
        """Oracle: the message, for an archive that is smaller than what is in it."""
        bomb = zipped({"trees/train.txt": "x" * 3000})
        with serving({"/bomb.zip": bomb, "/dev.txt": b""}) as address:
            with pytest.raises(ValueError, match="must have at most 2,999 bytes, but has more"):
                fetch(corpus(address, archive="bomb.zip", n_bytes=len(bomb), max_bytes=2999), tmp_path)
        assert not (tmp_path / "sst" / "train.txt").exists()
