"""A server of small files that sends the rest of one that is asked for, and can break off."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest

from elmo_tasks.vectors import download


class Handler(BaseHTTPRequestHandler):
    """Sends `files`; no more than `limit` bytes of each answer, if there is one; ranges only if `has_ranges`."""

    files: ClassVar[dict[str, bytes]] = {}
    asked: ClassVar[list[tuple[str, str | None]]] = []
    limit: ClassVar[int | None] = None
    has_ranges: ClassVar[bool] = True

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.asked.append((self.path, asked))
        content = self.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        start = int(re.findall(r"\d+", asked)[0]) if asked and self.has_ranges else 0
        if start and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start:][: self.limit])

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[str]:
    """The address of a server of these files."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        # A server with a certificate would test urllib.
        monkeypatch.setattr(download, "_SCHEMES", ("http",))
        Handler.files, Handler.limit, Handler.has_ranges = dict(files), None, True
        Handler.asked.clear()
        server = HTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
