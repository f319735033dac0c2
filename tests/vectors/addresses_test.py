"""Tests of the addresses in old programs."""

from pathlib import Path

import pytest

from elmo_tasks.bilm import Bilm
from elmo_tasks.vectors import addresses as module
from elmo_tasks.vectors import download
from elmo_tasks.vectors.addresses import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, local_files
from tests.paths import TINY_BILM


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class TestLocalFiles:
    def test_paths_stay_paths(self, monkeypatch):
        """Oracle: by hand; a tilde is the home."""
        monkeypatch.setenv("HOME", "/home/me")
        assert local_files("a.json", Path("b.hdf5")) == (Path("a.json"), Path("b.hdf5"))
        assert local_files("~/a.json", "~/b.hdf5") == (Path("/home/me/a.json"), Path("/home/me/b.hdf5"))

    @pytest.mark.parametrize(
        ("name", "files"),
        [
            ("original", (DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE)),
            (
                "small",
                tuple(
                    "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo/2x1024_128_2048cnn_1xhighway/elmo_2x1024_"
                    f"128_2048cnn_1xhighway_{file}"
                    for file in ("options.json", "weights.hdf5")
                ),
            ),
            (
                "original-5.5b",
                tuple(
                    "https://allennlp.s3.amazonaws.com/models/elmo/2x4096_512_2048cnn_2xhighway_5.5B/elmo_2x4096_512_"
                    f"2048cnn_2xhighway_5.5B_{file}"
                    for file in ("options.json", "weights.hdf5")
                ),
            ),
        ],
    )
    def test_the_authors_addresses_are_names(self, monkeypatch, name, files):
        """Oracle: the addresses as AllenNLP's and flair's code has them."""
        monkeypatch.setattr(module, "pretrained_files", lambda name: name)
        assert local_files(*files) == name

    def test_other_addresses_are_downloaded_once(self, home, tmp_path, monkeypatch):
        """Oracle: the files, which are gone the second time; each address has a folder of its own."""
        monkeypatch.setattr(download, "_SCHEMES", ("file",))
        server = tmp_path / "server"
        server.mkdir()
        for name in ("options.json", "weights.hdf5"):
            (server / f"mine_{name}").write_bytes((TINY_BILM / name).read_bytes())
        addresses = [f"{server.as_uri()}/mine_{name}" for name in ("options.json", "weights.hdf5")]
        found = local_files(*addresses)
        for path in server.iterdir():
            path.unlink()
        assert local_files(*addresses) == found
        assert local_files(TINY_BILM / "options.json", addresses[1]) == (TINY_BILM / "options.json", found[1])
        for path in found:
            assert path.read_bytes() == (TINY_BILM / path.name).read_bytes()
            assert home in path.parents

    def test_the_ending_of_an_address_is_that_of_the_file(self, tmp_path, monkeypatch):
        """Oracle: the weights, which are read as safetensors."""
        monkeypatch.setattr(download, "_SCHEMES", ("file",))
        bilm = Bilm.from_files(TINY_BILM / "options.json", TINY_BILM / "weights.hdf5")
        bilm.save(tmp_path / "options.json", tmp_path / "mine.safetensors")
        addresses = [(tmp_path / name).as_uri() for name in ("options.json", "mine.safetensors")]
        found = local_files(*addresses)
        assert found[1].name == "weights.safetensors"
        assert Bilm.from_files(*found).state_dict().keys() == bilm.state_dict().keys()

    @pytest.mark.parametrize("address", ["http://a.example/options.json", "s3://a/options.json"])
    def test_only_https_is_used(self, address):
        """Oracle: the message, with the address."""
        with pytest.raises(ConnectionError, match=f"the file {address} is not in the cache, .*only https is used"):
            local_files(address, "weights.hdf5")
