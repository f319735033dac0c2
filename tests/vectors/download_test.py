"""Tests of downloads."""

import hashlib
import io
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from elmo_tasks.vectors import download as module
from elmo_tasks.vectors.download import download, file_digest

CONTENT = bytes(range(256)) * 100
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """`/file` is whole, `/short` ends too early, other paths are unknown."""

    def do_GET(self) -> None:
        known = self.path in ("/file", "/short")
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(CONTENT) if known else 0))
        self.end_headers()
        if known:
            self.wfile.write(CONTENT if self.path == "/file" else CONTENT[:1000])

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        server.server_close()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestDownload:
    @pytest.mark.parametrize("sha256", [None, DIGEST])
    def test_a_file_comes_whole(self, server, tmp_path, sha256):
        """Oracle: its bytes and their digest; no other file is left; a folder is made."""
        file = tmp_path / "new" / "folder" / "weights"
        assert download(f"{server}/file", file, sha256) == DIGEST == file_digest(file)
        assert file.read_bytes() == CONTENT
        assert names(file.parent) == ["weights"]
        assert file.stat().st_mode & 0o777 == 0o644

    @pytest.mark.parametrize(
        ("path", "reason"), [("/short", "ended after 1,000 of 25,600 bytes|IncompleteRead"), ("/nothing", "404")]
    )
    def test_a_download_that_fails_leaves_nothing(self, server, tmp_path, path, reason):
        """Oracle: the message has URL and reason; the folder is empty."""
        with pytest.raises(ConnectionError, match=rf"{server}{path} cannot be downloaded: .*({reason})"):
            download(f"{server}{path}", tmp_path / "weights")
        assert names(tmp_path) == []

    def test_a_file_with_another_digest_is_refused(self, server, tmp_path):
        """Oracle: the message has both digests; the old file stays."""
        (tmp_path / "weights").write_bytes(b"old")
        with pytest.raises(ValueError, match=f"the SHA-256 of {server}/file must be {'0' * 64}, but is {DIGEST}"):
            download(f"{server}/file", tmp_path / "weights", "0" * 64)
        assert (tmp_path / "weights").read_bytes() == b"old"
        assert names(tmp_path) == ["weights"]

    def test_without_a_network_the_message_has_the_reason(self, tmp_path, monkeypatch):
        """Oracle: a port at which no server listens."""
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with pytest.raises(ConnectionError, match=r"http://127\.0\.0\.1:9/file cannot be downloaded: .*refused"):
            download("http://127.0.0.1:9/file", tmp_path / "weights")

    def test_an_interrupt_leaves_nothing(self, tmp_path, monkeypatch):
        """Oracle: the folder after Ctrl-C at the second block."""
        blocks = iter([b"first"])

        class Response(io.BytesIO):
            headers: ClassVar = {}

            def read(self, *args: object) -> bytes:
                for block in blocks:
                    return block
                raise KeyboardInterrupt

        monkeypatch.setattr(module, "urlopen", lambda *args, **kwargs: Response())
        with pytest.raises(KeyboardInterrupt):
            download("http://host/file", tmp_path / "weights")
        assert names(tmp_path) == []

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
    def test_a_full_disk_is_named(self, server, tmp_path, monkeypatch):
        """Oracle: the system's error with the file; nothing is left."""
        monkeypatch.setattr(module, "open", lambda _, mode: open("/dev/full", mode), raising=False)  # noqa: SIM115
        with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/weights'"):
            download(f"{server}/file", tmp_path / "weights")
        assert names(tmp_path) == []

    def test_a_long_download_reports_how_far_it_is(self, server, tmp_path, monkeypatch, capsys):
        """Oracle: by hand: no line for a quick one; a line a block, if every block is late."""
        download(f"{server}/file", tmp_path / "weights")
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(module, "_REPORT_EVERY", -1.0)
        download(f"{server}/file", tmp_path / "weights")
        captured = capsys.readouterr()
        assert captured.err == f"elmo_tasks: 0 of 0 MB of {server}/file\n"
        assert captured.out == ""
