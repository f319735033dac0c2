import hashlib
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from elmo_tasks.configs import config_variables, evaluate_file
from elmo_tasks.files.json_files import read_json
from elmo_tasks.paper import public_data
from elmo_tasks.paper.plan import digest_of
from elmo_tasks.paper.public_data import CORPORA, OPEN_DATA, Corpus, PublicFile, fetch, fetch_open
from tests.paths import CHECKOUT, TRAINING_CONFIGS


@pytest.fixture
def served(tmp_path) -> Iterator[str]:
    """The URL of a folder with a zip archive of two texts, and the text `plain`."""
    folder = tmp_path / "served"
    folder.mkdir()
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("in/one.txt", "(3 good)\n")
        archive.writestr("in/two.txt", "(1 bad)\n")
    (folder / "plain").write_text("text")
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_members_and_files_are_downloaded_once_to_their_places(served, tmp_path):
    digest = hashlib.sha256((tmp_path / "served" / "a.zip").read_bytes()).hexdigest()
    files = (
        PublicFile(f"{served}/a.zip", {"in/one.txt": "sst/dev.txt"}, digest),
        PublicFile(f"{served}/plain", "a/b"),
    )
    for _ in range(2):
        found = fetch(Corpus("", "", files), tmp_path / "data")
        assert [path.read_text() for path in found] == ["(3 good)\n", "text"]
        assert [str(path.relative_to(tmp_path)) for path in found] == [
            "data/sst/dev.txt",
            "data/a/b",
        ]
        # The second call needs no server.
        for path in (tmp_path / "served").iterdir():
            path.unlink()
    assert not list((tmp_path / "data" / ".downloads").iterdir())


@pytest.mark.parametrize(("content", "digest"), [("text", "0" * 64), ("<html>Log in</html>", None)])
def test_a_different_file_is_an_error_and_not_kept(served, tmp_path, content, digest):
    (tmp_path / "served" / "plain").write_text(content)
    with pytest.raises(ValueError, match="plain"):
        fetch(Corpus("", "", (PublicFile(f"{served}/plain", "a/b", digest),)), tmp_path / "data")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]


@pytest.fixture
def owners(served, tmp_path, monkeypatch):
    """SST-5 from a local server, with the digest of the file there."""
    monkeypatch.setitem(
        CORPORA, "sst", Corpus("", "", (PublicFile(f"{served}/plain", "sst/dev.txt"),))
    )
    lines = (OPEN_DATA / "SHA256SUMS").read_text().splitlines()
    lines = [line for line in lines if not line.split()[1].startswith("sst")]
    lines.append(f"{hashlib.sha256(b'text').hexdigest()}  sst/dev.txt")
    source = tmp_path / "source"
    source.mkdir()
    for folder in OPEN_DATA.iterdir():
        (source / folder.name).symlink_to(folder)
    (source / "SHA256SUMS").unlink()
    (source / "SHA256SUMS").write_text("\n".join(lines))
    return str(source)


def test_the_open_data_is_what_the_published_runs_were_trained_on(owners, tmp_path):
    places = {path.relative_to(tmp_path / "data") for path in fetch_open(tmp_path / "data", owners)}
    assert len(places) == 27 and all((tmp_path / "data" / place).is_file() for place in places)
    for task in ("ner", "snli", "squad", "srl", "coref"):
        # In `open`, in `stopped`, or in both.
        runs = list((CHECKOUT / "results").glob(f"*/{task}/baseline/1.json"))
        assert runs
        for run in runs:
            inputs = read_json(run)["inputs"]
            assert inputs == {name: digest_of(tmp_path / name) for name in inputs}


def test_existing_data_that_differs_from_the_open_data_is_kept(owners, tmp_path):
    other = tmp_path / "data" / "ner" / "dev.txt"
    other.parent.mkdir(parents=True)
    other.write_text("other")
    with pytest.raises(ValueError, match=r"ner/dev\.txt"):
        fetch_open(tmp_path / "data", owners)
    assert [path for path in (tmp_path / "data").rglob("*") if path.is_file()] == [other]
    assert other.read_text() == "other"


def test_the_configs_read_what_is_downloaded(tmp_path):
    variables = {
        **config_variables({}),
        "ELMO_TASKS_DATA": "DATA",
        "ELMO_TASKS_GLOVE": "glove.6B.100d.txt",
    }
    for name in ("snli", "squad", "sst", "ner"):
        config = evaluate_file(str(TRAINING_CONFIGS / f"{name}.jsonnet"), variables)
        for file in (*CORPORA[name].files, *CORPORA["glove"].files):
            places = [file.place] if isinstance(file.place, str) else file.place.values()
            assert all(f"DATA/{place}" in config for place in places)


def test_the_command_lists_explains_and_downloads(command, served, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    monkeypatch.setitem(
        public_data.CORPORA, "sst", Corpus("", "", (PublicFile(f"{served}/plain", "sst/dev.txt"),))
    )
    command("elmo-data")
    command("elmo-data", "conll2003")
    listed = capsys.readouterr().out
    assert all(f"{name} " in listed for name in (*CORPORA, "open", "wsd")) and "eng.train" in listed
    command("elmo-data", "sst", "--to", tmp_path / "data")
    assert capsys.readouterr().out == f"{tmp_path}/data/sst/dev.txt\n"
    for arguments in (["elmo-data", "imdb", "--to", tmp_path], ["elmo-data", "sst"]):
        with pytest.raises(SystemExit):
            command(*arguments)
