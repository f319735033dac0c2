"""Tests of biLM names, archives and downloads, which use a local server."""

import shutil
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from elmo_tasks import Elmo, ElmoEmbedder
from elmo_tasks.files.shipped import PRETRAINED
from elmo_tasks.vectors import pretrained
from elmo_tasks.vectors.pretrained import NAMED_BILMS, pretrained_files
from tests.bilm.many_langs.models import SENTENCES, write_model
from tests.paths import TINY_BILM
from tests.vectors.helpers import assert_all_equal

FILES = ["options.json", "weights.hdf5"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Homes(BaseHTTPRequestHandler):
    """Serves the files of the tiny biLM. The folder in the path is the problem with its weights."""

    def do_GET(self) -> None:
        path, _, _ = self.path.partition("?")
        _, problem, name = path.split("/")
        if name == "options.json":
            problem = ""
        content = (TINY_BILM / name).read_bytes()
        n_bytes = len(content)
        content_type = "application/octet-stream"
        status = 200
        if problem == "slow":
            time.sleep(1.0)
        elif problem == "missing":
            status = 404
        elif problem == "page":
            content_type = "text/html"
        elif problem == "cut":
            content = content[:5000]
        elif problem == "other":
            content = content[::-1]
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(n_bytes))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Homes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def assert_tiny(bilm: str | Path) -> None:
    arrays = Elmo.from_pretrained(bilm).embed(SENTENCES)
    assert_all_equal(arrays, Elmo.from_pretrained(TINY_BILM).embed(SENTENCES))


def test_the_names_are_the_published_ones():
    assert NAMED_BILMS["original"] == (
        "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/"
        "elmo_2x4096_512_2048cnn_2xhighway_",
        "https://huggingface.co/lysandre/elmo-2x4096_512_2048cnn_2xhighway/resolve/main/",
    )
    # The list of ELMoForManyLangs begins with Arabic at 136.zip and ends with traditional Chinese
    # at 179.zip.
    assert NAMED_BILMS["efml-ar"][0].endswith("/11/136.zip")
    assert NAMED_BILMS["efml-zh"][0].endswith("/11/179.zip")


def test_a_name_is_downloaded_once(home, tmp_path, monkeypatch):
    shutil.copytree(TINY_BILM, tmp_path / "server")
    address = f"{(tmp_path / 'server').as_uri()}/"
    monkeypatch.setitem(NAMED_BILMS, "small", (address,))
    files = pretrained_files("small")
    assert files == (home / "small" / "options.json", home / "small" / "weights.hdf5")
    lines = (home / "small" / "SHA256SUMS").read_text().splitlines()
    for line, name in zip(lines, FILES, strict=True):
        assert line == f"{sha256((TINY_BILM / name).read_bytes()).hexdigest()}  {name}"
    shutil.rmtree(tmp_path / "server")
    assert pretrained_files("small") == files
    assert_tiny("small")
    # Old programs pass the two URLs.
    embedder = ElmoEmbedder(f"{address}options.json", f"{address}weights.hdf5")
    assert embedder.elmo_bilm.options == Elmo.from_pretrained(TINY_BILM).bilm.options


@pytest.mark.parametrize("problem", ["refused", "missing", "page", "cut", "slow", "other"])
def test_the_next_address_is_tried(home, server, monkeypatch, caplog, problem):
    monkeypatch.setattr(pretrained, "TIMEOUT", 0.5)
    address = "http://127.0.0.1:9/" if problem == "refused" else f"{server}/{problem}/"
    monkeypatch.setitem(NAMED_BILMS, "small", (address,))
    with pytest.raises(ConnectionError, match=f"small.*{address}.*{home}"):
        pretrained_files("small")
    assert [path.name for path in home.iterdir()] == [".small.lock"]
    monkeypatch.setitem(NAMED_BILMS, "small", (address, f"{server}/whole/"))
    _, weight_file = pretrained_files("small")
    assert weight_file.read_bytes() == (TINY_BILM / "weights.hdf5").read_bytes()
    assert sum(address in message for message in caplog.messages) == 2


def test_an_archive_of_many_langs_becomes_a_folder(home, tmp_path, monkeypatch):
    model = write_model(tmp_path / "model")
    archive = shutil.make_archive(str(tmp_path / "136"), "zip", model)
    monkeypatch.setitem(NAMED_BILMS, "efml-ar", (Path(archive).as_uri(),))
    # The boundaries are words that only a biLM takes.
    sentences = []
    for words in SENTENCES:
        sentences.append([word for word in words if word not in ("<bos>", "<eos>")])
    expected = Elmo.from_pretrained(model).embed(sentences, layers="all")
    for _ in range(2):
        arrays = Elmo.from_pretrained("efml-ar").embed(sentences, layers="all")
        assert_all_equal(arrays, expected)
        Path(archive).unlink(missing_ok=True)
    assert sorted(path.name for path in (home / "efml-ar").iterdir()) == ["SHA256SUMS", *FILES]


@pytest.mark.parametrize("archive", [None, "zip", "gztar"])
@pytest.mark.parametrize(
    "names",
    [FILES, ["elmo_2x16_options.json", "elmo_2x16_weights.hdf5"], ["options.json", "model.hdf5"]],
)
def test_files_may_have_other_names_and_be_in_an_archive(home, tmp_path, names, archive):
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    for name, other_name in zip(FILES, names, strict=True):
        shutil.copy(TINY_BILM / name, folder / other_name)
    if archive:
        assert_tiny(shutil.make_archive(str(tmp_path / "archive"), archive, folder.parent))
    else:
        assert_tiny(folder)
    if names != FILES:
        shutil.copy(folder / names[1], folder / "copy.hdf5")
        with pytest.raises(ValueError, match=f"copy.hdf5.*{names[1]}"):
            Elmo.from_pretrained(folder)


def test_a_name_comes_before_a_folder_and_a_folder_before_the_hub(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(
        hub, "snapshot_download", lambda name, revision, **_: Path("hub", f"{name}-{revision}")
    )
    monkeypatch.chdir(tmp_path)
    for name in ("small-open", "org/mine"):
        shutil.copytree(TINY_BILM, tmp_path / name)
    folders = {
        "small-open": PRETRAINED / "small-open",
        "./small-open": "small-open",
        "org/mine": "org/mine",
        "org/name": "hub/org/name-None",
        "org/name@v1": "hub/org/name-v1",
    }
    for name, folder in folders.items():
        options_file, _ = pretrained_files(name)
        assert options_file.parent == Path(folder)


@pytest.mark.parametrize(
    "answer", ["whole/options.json?", "page/weights.hdf5?", "missing/weights.hdf5?", ""]
)
def test_the_cache_replaces_a_hub_without_a_usable_answer(server, tmp_path, monkeypatch, answer):
    hub = pytest.importorskip("huggingface_hub.constants")
    endpoint = f"{server}/{answer}" if answer else "http://127.0.0.1:9"
    monkeypatch.setattr(hub, "ENDPOINT", endpoint)
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match=r"org/tiny.* the hub"):
        pretrained_files("org/tiny")
    cached = tmp_path / "models--org--tiny"
    shutil.copytree(TINY_BILM, cached / "snapshots" / "0123")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("0123")
    assert_tiny("org/tiny")


@pytest.mark.parametrize("format", ["hdf5", "safetensors"])
def test_a_saved_folder_is_loaded(tmp_path, format):
    Elmo.from_pretrained(TINY_BILM).save(tmp_path, format=format)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"options.json", f"weights.{format}", "README.md"}
    assert_tiny(tmp_path)
    (tmp_path / "README.md").write_text("mine")
    Elmo.from_pretrained(TINY_BILM).save(tmp_path, format=format)
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "device", "names"),
    [
        ("smal-open", "cpu", "small-open"),
        ("no/such/folder", "cpu", "no/such/folder"),
        (TINY_BILM, "gpu", "devices cpu.* 'gpu'"),
    ],
)
def test_an_error_names_what_is_wrong_or_works(tmp_path, monkeypatch, name, device, names):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=names):
        Elmo.from_pretrained(name, device=device)
