"""Tests of biLM names, archives and downloads, which use a local server."""

import shutil
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from elmo_tasks import Elmo, ElmoEmbedder
from elmo_tasks.shipped import PRETRAINED
from elmo_tasks.vectors import pretrained
from elmo_tasks.vectors.pretrained import DIGESTS, NAMED_BILMS, pretrained_files
from tests.bilm.many_langs.models import SENTENCES, write_model
from tests.paths import TINY_BILM

FILES = ["options.json", "weights.hdf5"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Homes(BaseHTTPRequestHandler):
    """Serves the files of the tiny biLM. The folder in a path says what goes wrong with the second file."""

    def do_GET(self) -> None:
        _, kind, name = self.path.split("/")
        content, kind = (TINY_BILM / name).read_bytes(), "whole" if name == FILES[0] else kind
        if kind == "slow":
            time.sleep(1.0)
        self.send_response(404 if kind == "missing" else 200)
        self.send_header("Content-Type", "text/html" if kind == "page" else "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(
            content[: len(content) // 2] if kind == "cut" else content[::-1] if kind == "other" else content
        )


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Homes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def assert_tiny(bilm: str | Path) -> None:
    found, expected = (Elmo.from_pretrained(each).embed(SENTENCES) for each in (bilm, TINY_BILM))
    assert all(np.array_equal(*arrays) for arrays in zip(found, expected, strict=True))


def test_the_names_are_the_published_ones():
    assert NAMED_BILMS["original"] == (
        "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway_",
        "https://huggingface.co/lysandre/elmo-2x4096_512_2048cnn_2xhighway/resolve/main/",
    )
    # The list of ELMoForManyLangs begins with Arabic at 136.zip and ends with traditional Chinese at 179.zip.
    assert NAMED_BILMS["efml-ar"][0].endswith("/11/136.zip")
    assert NAMED_BILMS["efml-zh"][0].endswith("/11/179.zip")


def test_a_name_is_downloaded_once(home, tmp_path, monkeypatch):
    shutil.copytree(TINY_BILM, tmp_path / "server")
    address = f"{(tmp_path / 'server').as_uri()}/"
    monkeypatch.setitem(NAMED_BILMS, "small", (address,))
    files = pretrained_files("small")
    assert files == (home / "small" / "options.json", home / "small" / "weights.hdf5")
    digests = [f"{sha256((TINY_BILM / name).read_bytes()).hexdigest()}  {name}\n" for name in FILES]
    assert (home / "small" / "SHA256SUMS").read_text() == "".join(digests)
    shutil.rmtree(tmp_path / "server")
    assert pretrained_files("small") == files
    assert_tiny("small")
    # Old programs pass the two URLs.
    embedder = ElmoEmbedder(*(f"{address}{name}" for name in FILES))
    assert embedder.elmo_bilm.options == Elmo.from_pretrained(TINY_BILM).bilm.options


@pytest.mark.parametrize("problem", ["refused", "missing", "page", "cut", "slow", "other", "digest"])
def test_the_next_address_is_tried(home, server, monkeypatch, caplog, problem):
    monkeypatch.setattr(pretrained, "TIMEOUT", 0.5)
    first = "http://127.0.0.1:9/" if problem == "refused" else f"{server}/{problem}/"
    monkeypatch.setitem(NAMED_BILMS, "medium", (first,))
    if problem == "digest":
        monkeypatch.setitem(DIGESTS, "medium/weights.hdf5", "0" * 64)
    with pytest.raises(ConnectionError, match=f"medium.*{first}.*{home}"):
        pretrained_files("medium")
    assert [path.name for path in home.iterdir() if path.is_dir()] == []
    monkeypatch.setitem(NAMED_BILMS, "small", (first, f"{server}/whole/"))
    assert pretrained_files("small")[1].read_bytes() == (TINY_BILM / FILES[1]).read_bytes()
    assert sum(first in line for line in caplog.messages) == (1 if problem == "digest" else 2)


def test_an_unreachable_file_leaves_nothing(home, tmp_path):
    with pytest.raises(ConnectionError, match="missing"):
        ElmoEmbedder((tmp_path / "missing").as_uri(), "weights.hdf5")
    assert not [path for path in home.rglob("*") if path.is_file()]


def test_an_archive_of_many_langs_becomes_a_folder(home, tmp_path, monkeypatch):
    model = write_model(tmp_path / "model")
    archive = shutil.make_archive(str(tmp_path / "136"), "zip", model)
    monkeypatch.setitem(NAMED_BILMS, "efml-ar", (Path(archive).as_uri(),))
    expected = Elmo.from_pretrained(model).embed(SENTENCES, layers="all")
    for _ in range(2):
        found = Elmo.from_pretrained("efml-ar").embed(SENTENCES, layers="all")
        assert all(np.array_equal(*arrays) for arrays in zip(found, expected, strict=True))
        Path(archive).unlink(missing_ok=True)
    assert sorted(path.name for path in (home / "efml-ar").iterdir()) == ["SHA256SUMS", *FILES]


@pytest.mark.parametrize("archive", [None, "zip", "gztar"])
@pytest.mark.parametrize(
    "names", [FILES, ["elmo_2x16_options.json", "elmo_2x16_weights.hdf5"], ["options.json", "model.hdf5"]]
)
def test_files_may_have_other_names_and_be_in_an_archive(home, tmp_path, names, archive):
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    for name, theirs in zip(FILES, names, strict=True):
        shutil.copy(TINY_BILM / name, folder / theirs)
    assert_tiny(shutil.make_archive(str(tmp_path / "archive"), archive, folder.parent) if archive else folder)
    if names != FILES:
        shutil.copy(folder / names[1], folder / "copy.hdf5")
        with pytest.raises(ValueError, match=f"copy.hdf5.*{names[1]}"):
            Elmo.from_pretrained(folder)


@pytest.mark.parametrize(("name", "arguments"), [("org/name", ("org/name", None)), ("org/name@v1", ("org/name", "v1"))])
def test_a_repository_of_the_hub_comes_after_a_folder(tmp_path, monkeypatch, name, arguments):
    hub = pytest.importorskip("huggingface_hub")
    asked = []
    monkeypatch.setattr(
        hub, "snapshot_download", lambda name, revision, **_: asked.append((name, revision)) or TINY_BILM
    )
    monkeypatch.chdir(tmp_path)
    assert pretrained_files(name)[0].parent == TINY_BILM
    assert asked == [arguments]
    shutil.copytree(TINY_BILM, tmp_path / name)
    assert pretrained_files(name)[0] == Path(name, "options.json")


def test_a_name_takes_precedence_over_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TINY_BILM, tmp_path / "small-open")
    assert pretrained_files("small-open")[0].parent == PRETRAINED / "small-open"
    assert pretrained_files("./small-open")[0].parent == Path("small-open")


@pytest.mark.parametrize("format", ["hdf5", "safetensors"])
def test_a_saved_folder_is_loaded(tmp_path, format):
    elmo = Elmo.from_pretrained(TINY_BILM)
    elmo.save(tmp_path / "mine", format=format)
    assert {path.name for path in (tmp_path / "mine").iterdir()} == {"options.json", f"weights.{format}", "README.md"}
    assert_tiny(tmp_path / "mine")
    card = tmp_path / "mine" / "README.md"
    assert card.read_text().startswith("---\nlibrary_name: elmo_tasks\n")
    card.write_text("mine")
    elmo.save(tmp_path / "mine", format=format)
    assert card.read_text() == "mine"


@pytest.mark.parametrize(("name", "names"), [("smal-open", "small-open"), ("no/such/folder", "no/such/folder")])
def test_an_error_names_a_wrong_name(tmp_path, monkeypatch, name, names):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=names):
        pretrained_files(name)
