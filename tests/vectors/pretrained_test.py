"""Tests of biLM names and of downloads, which use the URLs of local files."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from elmo_tasks import Elmo, ElmoEmbedder
from elmo_tasks.shipped import PRETRAINED
from elmo_tasks.vectors import pretrained
from elmo_tasks.vectors.pretrained import NAMED_BILMS, downloaded, pretrained_files, weight_file_in
from tests.bilm.many_langs.models import SENTENCES, write_model
from tests.paths import TINY_BILM


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_the_names_are_the_published_ones():
    assert NAMED_BILMS["original"] == (
        "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway_"
    )
    # The list of ELMoForManyLangs begins with Arabic at 136.zip and ends with traditional Chinese at 179.zip.
    assert NAMED_BILMS["efml-ar"].endswith("/11/136.zip")
    assert NAMED_BILMS["efml-zh"].endswith("/11/179.zip")


def test_a_name_is_downloaded_once(home, tmp_path, monkeypatch):
    server = tmp_path / "server"
    server.mkdir()
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(TINY_BILM / name, server / f"elmo_{name}")
    monkeypatch.setitem(NAMED_BILMS, "small", f"{server.as_uri()}/elmo_")
    files = pretrained_files("small")
    assert files == (home / "small" / "options.json", home / "small" / "weights.hdf5")
    shutil.rmtree(server)
    assert pretrained_files("small") == files
    assert np.array_equal(Elmo.from_pretrained("small").embed([["a"]]), Elmo.from_pretrained(TINY_BILM).embed([["a"]]))
    # Old programs pass the two URLs.
    embedder = ElmoEmbedder(f"{server.as_uri()}/elmo_options.json", f"{server.as_uri()}/elmo_weights.hdf5")
    assert embedder.elmo_bilm.options == Elmo.from_pretrained(TINY_BILM).bilm.options


def test_an_unreachable_address_leaves_nothing(home, tmp_path):
    with pytest.raises(ConnectionError, match="missing"):
        downloaded((tmp_path / "missing").as_uri(), home / "file")
    assert not list(home.iterdir())


def test_an_archive_of_many_langs_becomes_a_folder(home, tmp_path, monkeypatch):
    model = write_model(tmp_path / "model")
    archive = shutil.make_archive(str(tmp_path / "136"), "zip", model)
    monkeypatch.setitem(NAMED_BILMS, "efml-ar", Path(archive).as_uri())
    expected = Elmo.from_pretrained(model).embed(SENTENCES, layers="all")
    for _ in range(2):
        found = Elmo.from_pretrained("efml-ar").embed(SENTENCES, layers="all")
        assert all(np.array_equal(*arrays) for arrays in zip(found, expected, strict=True))
        Path(archive).unlink(missing_ok=True)
    assert sorted(path.name for path in home.iterdir()) == ["efml-ar"]


def test_a_name_takes_precedence_over_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(TINY_BILM, tmp_path / "small-open")
    assert pretrained_files("small-open")[0].parent == PRETRAINED / "small-open"
    assert pretrained_files("./small-open")[0].parent == Path("small-open")


def test_weights_may_be_safetensors(tmp_path):
    elmo = Elmo.from_pretrained(TINY_BILM)
    elmo.bilm.save(tmp_path / "options.json", tmp_path / "weights.safetensors")
    assert weight_file_in(tmp_path).name == "weights.safetensors"
    assert np.array_equal(Elmo.from_pretrained(tmp_path).embed([["a"]]), elmo.embed([["a"]]))


@pytest.mark.parametrize(("name", "names"), [("smal-open", "small-open"), ("no/such/folder", "no/such/folder")])
def test_an_error_names_a_wrong_name(tmp_path, monkeypatch, name, names):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=names):
        pretrained.pretrained_files(name)
