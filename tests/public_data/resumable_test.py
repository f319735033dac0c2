"""Tests of downloads that resume."""

import hashlib
from collections.abc import Iterator

import pytest

from elmo_tasks.public_data.resumable import download_resumably
from tests.public_data.server import Handler, serving

CONTENT = bytes(range(256)) * 40
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[str]:
    with serving({"/file": CONTENT}) as address:
        yield address


def fetch(url, file, *, n_bytes=None, max_bytes=10**6, sha256=None):
    download_resumably(url, file, n_bytes=n_bytes, max_bytes=max_bytes, sha256=sha256)


class TestDownloadResumably:
    def test_a_file_comes_whole(self, server, tmp_path):
        """Oracle: its bytes; nothing else is left, and what is there is not asked for again."""
        for _ in range(2):
            fetch(f"{server}/file", tmp_path / "file", n_bytes=len(CONTENT), sha256=DIGEST)
        assert [path.name for path in tmp_path.iterdir()] == ["file"]
        assert (tmp_path / "file").read_bytes() == CONTENT
        assert Handler.asked == [("/file", None)]

    @pytest.mark.parametrize("has_ranges", [True, False])
    def test_the_rest_of_an_interrupted_one_is_asked_for(self, server, tmp_path, has_ranges):
        """Oracle: its bytes, and the ranges that the server was asked for; one without ranges sends all again."""
        Handler.limit, Handler.has_ranges = 3000, has_ranges
        with pytest.raises(ConnectionError, match=r"the 3,000 bytes that came are in .*file\.part$"):
            fetch(f"{server}/file", tmp_path / "file")
        Handler.limit = None
        fetch(f"{server}/file", tmp_path / "file", sha256=DIGEST)
        assert (tmp_path / "file").read_bytes() == CONTENT
        assert [asked for _, asked in Handler.asked] == [None, "bytes=3000-"]

    def test_nothing_is_resumed_that_nothing_could_check(self, server, tmp_path):
        """Oracle: the bytes of today, and the ranges that the server was asked for, after another version's part."""
        (tmp_path / "file.part").write_bytes(b"older" * 10)
        fetch(f"{server}/file", tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == CONTENT
        assert [asked for _, asked in Handler.asked] == [None]

    def test_a_part_that_is_whole_is_taken(self, server, tmp_path):
        """Oracle: its bytes: a process was killed between the last of them and the new name."""
        (tmp_path / "file.part").write_bytes(CONTENT)
        fetch(f"{server}/file", tmp_path / "file", sha256=DIGEST)
        assert (tmp_path / "file").read_bytes() == CONTENT

    @pytest.mark.parametrize("wrong", [{"n_bytes": len(CONTENT) + 1}, {"sha256": "0" * 64}])
    def test_another_file_is_refused_and_removed(self, server, tmp_path, wrong):
        """Oracle: the message names what is wrong; a part of an earlier version does not stay."""
        with pytest.raises(ValueError, match=r"must have .*, but has .*Remedy: run the command again"):
            fetch(f"{server}/file", tmp_path / "file", **wrong)
        assert not list(tmp_path.iterdir())

    def test_a_larger_file_is_refused(self, server, tmp_path):
        """Oracle: the message; nothing is left."""
        with pytest.raises(ConnectionError, match="must have at most 10,000 bytes, but has 10,240"):
            fetch(f"{server}/file", tmp_path / "file", max_bytes=10_000)
        assert not list(tmp_path.iterdir())

    def test_what_is_not_there_is_an_error(self, server, tmp_path):
        """Oracle: the message has address and reason."""
        with pytest.raises(ConnectionError, match=r"/none cannot be downloaded: .*404"):
            fetch(f"{server}/none", tmp_path / "file")

    def test_only_https_is_read(self, tmp_path):
        """Oracle: the message."""
        with pytest.raises(ConnectionError, match="only https is used"):
            fetch("ftp://example.org/file", tmp_path / "file")
