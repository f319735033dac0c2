import hashlib
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from elmo_tasks.configs import config_variables, evaluate_file
from elmo_tasks.files.json_files import read_json
from elmo_tasks.paper.plan import digest_of
from elmo_tasks.paper.public_data import (
    CORPORA,
    OPEN_DATA,
    PublicCorpus,
    PublicFile,
    fetch,
    fetch_open,
)
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


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_members_and_files_are_downloaded_once_to_their_places(served, tmp_path):
    digest = hashlib.sha256((tmp_path / "served" / "a.zip").read_bytes()).hexdigest()
    files = (
        PublicFile(f"{served}/a.zip", {"in/one.txt": "sst/dev.txt"}, digest),
        PublicFile(f"{served}/plain", "a/b"),
    )
    for _ in range(2):
        paths = fetch(PublicCorpus("", "", files), tmp_path / "data")
        assert paths == [tmp_path / "data" / "sst" / "dev.txt", tmp_path / "data" / "a" / "b"]
        assert [path.read_text() for path in paths] == ["(3 good)\n", "text"]
        # The second call needs no server.
        for path in (tmp_path / "served").iterdir():
            path.unlink()
    assert not list((tmp_path / "data" / ".downloads").iterdir())


@pytest.mark.parametrize(("content", "digest"), [("text", "0" * 64), ("<html>Log in</html>", None)])
def test_a_different_file_is_an_error_and_not_kept(served, tmp_path, content, digest):
    (tmp_path / "served" / "plain").write_text(content)
    corpus = PublicCorpus("", "", (PublicFile(f"{served}/plain", "a/b", digest),))
    with pytest.raises(ValueError, match="plain"):
        fetch(corpus, tmp_path / "data")
    assert not files_in(tmp_path / "data")


@pytest.fixture
def served_sst(served, monkeypatch) -> None:
    """SST-5 from a local server."""
    file = PublicFile(f"{served}/plain", "sst/dev.txt")
    monkeypatch.setitem(CORPORA, "sst", PublicCorpus("", "", (file,)))


@pytest.fixture
def open_source(served_sst, tmp_path) -> str:
    """A copy of `data/open`, with the digest of the local server's SST-5."""
    lines = []
    for line in (OPEN_DATA / "SHA256SUMS").read_text().splitlines():
        _, path = line.split()
        if not path.startswith("sst"):
            lines.append(line)
    lines.append(f"{hashlib.sha256(b'text').hexdigest()}  sst/dev.txt")
    source = tmp_path / "source"
    source.mkdir()
    for folder in OPEN_DATA.iterdir():
        (source / folder.name).symlink_to(folder)
    (source / "SHA256SUMS").unlink()
    (source / "SHA256SUMS").write_text("\n".join(lines))
    return str(source)


def test_the_open_data_is_what_the_published_runs_were_trained_on(open_source, tmp_path):
    paths = fetch_open(tmp_path / "data", open_source)
    assert len(paths) == 27
    assert set(paths) == files_in(tmp_path / "data")
    for task in ("ner", "snli", "squad", "srl", "coref"):
        # In `open`, in `stopped`, or in both.
        runs = list((CHECKOUT / "results").glob(f"*/{task}/baseline/1.json"))
        assert runs
        for run in runs:
            inputs = read_json(run)["inputs"]
            assert inputs == {name: digest_of(tmp_path / name) for name in inputs}


def test_existing_data_that_differs_from_the_open_data_is_kept(open_source, tmp_path):
    existing = tmp_path / "data" / "ner" / "dev.txt"
    existing.parent.mkdir(parents=True)
    existing.write_text("other")
    with pytest.raises(ValueError, match=r"ner/dev\.txt"):
        fetch_open(tmp_path / "data", open_source)
    assert files_in(tmp_path / "data") == {existing}
    assert existing.read_text() == "other"


def test_the_configs_read_what_is_downloaded(tmp_path):
    variables = {
        **config_variables({}),
        "ELMO_TASKS_DATA": "DATA",
        "ELMO_TASKS_GLOVE": "glove.6B.100d.txt",
    }
    for name in ("snli", "squad", "sst", "ner"):
        config = evaluate_file(str(TRAINING_CONFIGS / f"{name}.jsonnet"), variables)
        for file in (*CORPORA[name].files, *CORPORA["glove"].files):
            paths = [file.path] if isinstance(file.path, str) else file.path.values()
            assert all(f"DATA/{path}" in config for path in paths)


def test_the_command_lists_explains_and_downloads(
    command, served_sst, tmp_path, capsys, monkeypatch
):
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    command("elmo-data")
    command("elmo-data", "conll2003")
    output = capsys.readouterr().out
    for name in (*CORPORA, "open", "wsd"):
        assert f"{name} " in output
    assert "eng.train" in output
    command("elmo-data", "sst", "--to", tmp_path / "data")
    assert capsys.readouterr().out == f"{tmp_path}/data/sst/dev.txt\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["imdb", "--to", "data"], "got 'imdb'"),
        (["sst"], "expected --to FOLDER or ELMO_TASKS_DATA, got neither"),
    ],
)
def test_the_command_names_what_is_wrong(command, monkeypatch, arguments, message):
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    with pytest.raises(SystemExit, match=message):
        command("elmo-data", *arguments)
