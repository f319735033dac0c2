"""Tests of downloads."""

import hashlib
import io
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.error import URLError
from urllib.request import Request

import pytest

from elmo_tasks.files.atomic_files import TEMPORARY
from elmo_tasks.vectors import download as module
from elmo_tasks.vectors.download import download

CONTENT = bytes(range(256)) * 100
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """
    `/file` is whole, `/short` ends too early, `/endless` does not end, `/unsized` does not say how long it is,
    `/length/X` says that it is X bytes, `/to/URL` redirects, other paths are unknown.
    """

    def do_GET(self) -> None:
        kind, _, value = self.path[1:].partition("/")
        if kind == "to":
            self.send_response(302)
            self.send_header("Location", value)
            self.end_headers()
            return
        known = kind in ("file", "short", "endless", "unsized", "length")
        self.send_response(200 if known else 404)
        if kind not in ("endless", "unsized"):
            self.send_header("Content-Length", value or str(len(CONTENT) if known else 0))
        self.end_headers()
        if known:
            self.wfile.write(CONTENT[:1000] if kind in ("short", "unsized") else CONTENT)
        while kind == "endless":
            try:
                self.wfile.write(CONTENT)
            except OSError:
                break

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        # A server with a certificate would test urllib.
        monkeypatch.setattr(module, "_SCHEMES", ("http",))
        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        server.server_close()


def fetch(
    url: str, file: Path, sha256: str | None = None, *, max_bytes: int = 10**6, check: object = lambda file: None
) -> None:
    download(url, file, max_bytes=max_bytes, check=check, sha256=sha256)  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestDownload:
    @pytest.mark.parametrize("sha256", [None, DIGEST])
    def test_a_file_comes_whole(self, server, tmp_path, sha256):
        """Oracle: its bytes; no other file is left; a folder is made; the group may write to neither."""
        file = tmp_path / "new" / "folder" / "weights"
        mask = os.umask(0o002)
        try:
            fetch(f"{server}/file", file, sha256)
        finally:
            os.umask(mask)
        assert file.read_bytes() == CONTENT
        assert names(file.parent) == ["weights"]
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o644, 0o755)

    @pytest.mark.parametrize(
        ("path", "reason"), [("/short", "ended after 1,000 of 25,600 bytes|IncompleteRead"), ("/nothing", "404")]
    )
    def test_a_download_that_fails_leaves_nothing(self, server, tmp_path, path, reason):
        """Oracle: the message has URL and reason; the folder is empty."""
        with pytest.raises(ConnectionError, match=rf"{server}{path} cannot be downloaded: .*({reason})"):
            fetch(f"{server}{path}", tmp_path / "weights")
        assert names(tmp_path) == []

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("/endless", "at most 1,000,000 bytes, but has more"),
            ("/length/1000001", "at most 1,000,000 bytes, but has more"),
            ("/length/-5", "the server says that it has '-5' bytes"),
            ("/length/abc", "the server says that it has 'abc' bytes"),
            ("/length/" + "9" * 50, "the server says that it has '9+"),
        ],
    )
    def test_a_file_of_another_size_is_refused(self, server, tmp_path, path, reason):
        """Oracle: the reason in the message; the folder is empty."""
        with pytest.raises(ConnectionError, match=rf"{server}{path} cannot be downloaded: .*{reason}"):
            fetch(f"{server}{path}", tmp_path / "weights")
        assert names(tmp_path) == []

    def test_a_file_may_have_the_largest_size(self, server, tmp_path):
        """Oracle: its bytes; one byte less is refused."""
        fetch(f"{server}/file", tmp_path / "weights", max_bytes=len(CONTENT))
        assert (tmp_path / "weights").read_bytes() == CONTENT
        with pytest.raises(ConnectionError, match="at most 25,599 bytes"):
            fetch(f"{server}/file", tmp_path / "weights", max_bytes=len(CONTENT) - 1)

    def test_a_file_that_is_cut_off_unseen_is_checked_before_it_is_there(self, server, tmp_path):
        """Oracle: what the check is given: all bytes that came; its message, with the URL; the folder is empty."""

        def check(file: Path) -> None:
            if (found := file.read_bytes()) != CONTENT:
                raise ValueError(f"{file} has {len(found)} bytes")

        url = f"{server}/unsized"
        with pytest.raises(
            ValueError, match=f"{url} was not downloaded whole, or is another file: {url} has 1000 bytes"
        ):
            fetch(url, tmp_path / "weights", check=check)
        assert names(tmp_path) == []
        fetch(f"{server}/file", tmp_path / "weights", check=check)
        assert names(tmp_path) == ["weights"]

    @pytest.mark.parametrize("url", ["http://127.0.0.1:9/file", "ftp://127.0.0.1:9/file", "file:///file", "x", ""])
    def test_nothing_but_https_is_used(self, tmp_path, monkeypatch, url):
        """Oracle: the message, which is not that of a port at which no server listens."""
        monkeypatch.setattr(module, "_SCHEMES", ("https",))
        with pytest.raises(ConnectionError, match=rf"only https is used, but its address is '{re.escape(url)}'"):
            fetch(url, tmp_path / "weights")
        assert names(tmp_path) == []

    @pytest.mark.parametrize("target", ["https://127.0.0.1:9/file", "ftp://127.0.0.1:9/file"])
    def test_a_redirect_to_another_scheme_is_not_followed(self, server, tmp_path, target):
        """Oracle: the message: where a server of http stands in for one of https, https is the other scheme."""
        with pytest.raises(ConnectionError, match=rf"only https is used, but its address is '{target}'"):
            fetch(f"{server}/to/{target}", tmp_path / "weights")
        assert names(tmp_path) == []

    def test_a_redirect_from_https_to_http_is_not_followed(self, monkeypatch):
        """Oracle: the error; to https there is a request."""
        monkeypatch.setattr(module, "_SCHEMES", ("https",))
        handler = module._CheckedRedirects()
        request = Request("https://host/file")
        arguments = (io.BytesIO(), 302, "Found", request.headers)
        with pytest.raises(URLError, match="only https is used, but its address is 'http://host/file'"):
            handler.redirect_request(request, *arguments, "http://host/file")
        assert handler.redirect_request(request, *arguments, "https://other/file").full_url == "https://other/file"

    def test_a_redirect_is_followed(self, server, tmp_path):
        """Oracle: the bytes."""
        fetch(f"{server}/to/{server}/file", tmp_path / "weights")
        assert (tmp_path / "weights").read_bytes() == CONTENT

    @pytest.mark.parametrize("target", ["http://[::1", "http://", f"http://{'a' * 70}/", "http://127.0.0.1:99999/"])
    def test_a_redirect_to_no_address_is_an_error_in_one_line(self, server, tmp_path, target):
        """Oracle: its type and the URL."""
        with pytest.raises(ConnectionError, match="cannot be downloaded") as raised:
            fetch(f"{server}/to/{target}", tmp_path / "weights")
        assert "\n" not in str(raised.value)

    def test_what_a_killed_download_left_is_removed(self, server, tmp_path):
        """Oracle: the folder."""
        left = tmp_path / f"{TEMPORARY}{'a' * 32}-weights"
        left.write_bytes(CONTENT)
        os.utime(left, (0, 0))
        fetch(f"{server}/file", tmp_path / "weights")
        assert names(tmp_path) == ["weights"]

    def test_a_file_with_another_digest_is_refused(self, server, tmp_path):
        """Oracle: the message has both digests; the old file stays."""
        (tmp_path / "weights").write_bytes(b"old")
        with pytest.raises(ValueError, match=f"the SHA-256 of {server}/file must be {'0' * 64}, but is {DIGEST}"):
            fetch(f"{server}/file", tmp_path / "weights", "0" * 64)
        assert (tmp_path / "weights").read_bytes() == b"old"
        assert names(tmp_path) == ["weights"]

    def test_without_a_network_the_message_has_the_reason(self, tmp_path, monkeypatch):
        """Oracle: a port at which no server listens."""
        monkeypatch.setattr(module, "_SCHEMES", ("http",))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        with pytest.raises(ConnectionError, match=r"http://127\.0\.0\.1:9/file cannot be downloaded: .*refused"):
            fetch("http://127.0.0.1:9/file", tmp_path / "weights")

    def test_an_interrupt_leaves_nothing(self, tmp_path, monkeypatch):
        """Oracle: the folder after Ctrl-C at the second block."""
        blocks = iter([b"first"])

        class Response(io.BytesIO):
            headers: ClassVar = {}

            def read(self, *args: object) -> bytes:
                for block in blocks:
                    return block
                raise KeyboardInterrupt

        monkeypatch.setattr(module, "_SCHEMES", ("http",))
        monkeypatch.setattr(module.OpenerDirector, "open", lambda *args, **kwargs: Response())
        with pytest.raises(KeyboardInterrupt):
            fetch("http://host/file", tmp_path / "weights")
        assert names(tmp_path) == []

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
    def test_a_full_disk_is_named(self, server, tmp_path, monkeypatch):
        """Oracle: the system's error with the file; nothing is left."""
        monkeypatch.setattr(module, "open", lambda *_, **__: open("/dev/full", "wb"), raising=False)  # noqa: SIM115
        with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/weights'"):
            fetch(f"{server}/file", tmp_path / "weights")
        assert names(tmp_path) == []

    def test_a_long_download_reports_how_far_it_is(self, server, tmp_path, monkeypatch, capsys):
        """Oracle: by hand: no line for a quick one; a line a block, if every block is late."""
        monkeypatch.setattr(module, "_REPORT_EVERY", 3600.0)
        fetch(f"{server}/file", tmp_path / "weights")
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(module, "_REPORT_EVERY", -1.0)
        fetch(f"{server}/file", tmp_path / "weights")
        captured = capsys.readouterr()
        assert captured.err == f"elmo_tasks: 0 of 0 MB of {server}/file\n"
        assert captured.out == ""
