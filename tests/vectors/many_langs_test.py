"""Tests of the archives of ELMoForManyLangs."""

import hashlib
import os
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.vectors import download
from elmo_tasks.vectors import many_langs as module
from elmo_tasks.vectors.many_langs import ARCHIVES, unpack
from elmo_tasks.vectors.pretrained import NAMED_BILMS, NamedBilm, pretrained_files
from tests.bilm.many_langs.models import SENTENCES, layers_by_hand, write_model


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that a local server has; `efml-xx` is `161.zip` in it."""
    folder = tmp_path / "server"
    folder.mkdir()
    monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "_SCHEMES", ("http",))
    made = ThreadingHTTPServer(("127.0.0.1", 0), lambda *args: _Quiet(*args, directory=str(folder)))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{made.server_port}/161.zip"
    monkeypatch.setitem(NAMED_BILMS, "efml-xx", NamedBilm(archive=url))
    yield folder
    made.shutdown()
    made.server_close()


def archive(path: Path, folder: Path, *, omit: str | None = None, **others: bytes) -> Path:
    """An archive of a model, with files that published ones have, too."""
    with zipfile.ZipFile(path, "w") as opened:
        for file in sorted(folder.iterdir()):
            if file.name != omit:
                opened.write(file, file.name)
        for name, content in {"meta.json": b"{}", "README": b"", **others}.items():
            opened.writestr(name, content)
    return path


class TestArchives:
    def test_they_are_those_of_the_list(self):
        """Oracle: the README of ELMoForManyLangs, language by language where the numbers are not in order."""
        numbers = {language: int(url.split("/")[-1].removesuffix(".zip")) for language, url in ARCHIVES.items()}
        assert sorted(numbers.values()) == list(range(136, 180))
        known = dict(ar=136, cu=140, de=142, el=143, en=144, es=145, et=146, eu=147, fr=150, ga=151, gl=152, grc=153)
        known |= dict(he=154, hr=156, hu=157, id=158, it=159, ja=160, ko=161, lv=163, nl=164, nb=165, nn=166, pt=168)
        known |= dict(sk=171, sl=172, sv=173, tr=174, ug=175, uk=176, ur=177, vi=178, zh=179)
        assert {language: numbers[language] for language in known} == known
        assert ARCHIVES["ko"] == "https://vectors.nlpl.eu/repository/11/161.zip"


class TestDownload:
    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        return write_model(tmp_path / "model")

    def test_an_archive_becomes_a_bilm_in_the_public_format(self, server, model, tmp_path):
        """Oracle: the formulas in NumPy; the digests, by hashlib; the second time there is no server."""
        archive(server / "161.zip", model)
        elmo = Elmo.from_pretrained("efml-xx", device="cpu")
        (server / "161.zip").unlink()
        folder = tmp_path / "home" / "efml-xx"
        assert {path.name for path in folder.iterdir()} == {
            name + ending for name in ("options.json", "weights.hdf5") for ending in ("", ".sha256")
        }
        weights = folder / "weights.hdf5"
        digest = hashlib.sha256(weights.read_bytes()).hexdigest()
        assert (folder / "weights.hdf5.sha256").read_text() == f"{digest}  weights.hdf5\n"
        again = Elmo.from_pretrained("efml-xx", device="cpu")
        for sentence in SENTENCES:
            expected = layers_by_hand(model, sentence)
            for embedder in (elmo, again):
                np.testing.assert_allclose(embedder.embed([sentence], layers="all")[0], expected, rtol=0, atol=2e-6)
        weights.write_bytes(b"replaced")
        with pytest.raises(ValueError, match=r"weights\.hdf5 is damaged or was replaced: .* it is downloaded again"):
            pretrained_files("efml-xx")

    @pytest.mark.parametrize("missing", ["encoder.pkl", "word.dic", "cnn_small.json"])
    def test_an_archive_without_a_file_is_refused(self, server, model, tmp_path, missing):
        """Oracle: the address and the file in the message; nothing is kept but the lock."""
        archive(server / "161.zip", model, omit=missing)
        with pytest.raises(ValueError, match=rf"161\.zip must be the archive of a model, but is not: .*{missing}"):
            pretrained_files("efml-xx")
        assert [path.name for path in (tmp_path / "home").iterdir()] == ["_tmp-efml-xx.lock"]

    def test_a_page_in_place_of_the_archive_is_refused(self, server):
        """Oracle: the message."""
        (server / "161.zip").write_bytes(b"<html>gone</html>")
        with pytest.raises(ValueError, match="must be a zip archive, but is not"):
            pretrained_files("efml-xx")

    def test_without_network_the_error_says_what_to_do(self, server, tmp_path):
        """Oracle: the name, the folder and the remedies in the message."""
        message = f"the biLM 'efml-xx' is not in the cache, '{tmp_path}/home/efml-xx', and .*404.* unpack the archive"
        with pytest.raises(ConnectionError, match=message):
            pretrained_files("efml-xx")

    def test_a_folder_that_others_may_write_to_is_refused(self, server, model, tmp_path):
        """Oracle: the path in the message."""
        archive(server / "161.zip", model)
        pretrained_files("efml-xx")
        os.chmod(tmp_path / "home" / "efml-xx", 0o777)
        with pytest.raises(PermissionError, match="may be written by all users"):
            pretrained_files("efml-xx")


class TestUnpack:
    def test_files_of_other_names_are_not_unpacked(self, tmp_path):
        """Oracle: the names in the folder, and next to it."""
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
            for name in (
                "char.dic",
                "../evil.dic",
                "/evil.pkl",
                "sub/word.dic",
                "..\\evil.pkl",
                ".hidden.dic",
                "run.sh",
            ):
                opened.writestr(name, "x")
        unpack(tmp_path / "a.zip", tmp_path / "folder")
        assert [path.name for path in (tmp_path / "folder").iterdir()] == ["char.dic"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "folder"]

    def test_a_file_that_is_there_twice_is_refused(self, tmp_path):
        """Oracle: the message."""
        with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
            warnings.simplefilter("ignore")
            opened.writestr("char.dic", "x")
            opened.writestr("char.dic", "y")
        with pytest.raises(ValueError, match=r"must have each file once, but has 'char\.dic' twice"):
            unpack(tmp_path / "a.zip", tmp_path / "folder")

    def test_no_more_is_unpacked_than_a_model_has(self, tmp_path, monkeypatch):
        """Oracle: the message; a million zeros, which are a thousand bytes in the archive."""
        monkeypatch.setattr(module, "_MAX_BYTES", 2**20 - 1)
        with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as opened:
            opened.writestr("encoder.pkl", bytes(2**20))
        with pytest.raises(ValueError, match="must have at most 1,048,575 bytes, but have more"):
            unpack(tmp_path / "a.zip", tmp_path / "folder")

    @pytest.mark.parametrize("damage", [lambda c: c[:-30], lambda c: c.replace(b"hello", b"jello")])
    def test_damage_is_found(self, tmp_path, damage: Callable[[bytes], bytes]):
        """Oracle: the message."""
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as opened:
            opened.writestr("char.dic", "hello")
        (tmp_path / "a.zip").write_bytes(damage((tmp_path / "a.zip").read_bytes()))
        with pytest.raises(ValueError, match="must be a zip archive that can be read, but"):
            unpack(tmp_path / "a.zip", tmp_path / "folder")
