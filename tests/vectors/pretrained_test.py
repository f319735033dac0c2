"""Tests of the files of biLMs."""

import hashlib
import os
import re
import shutil
from pathlib import Path

import pytest

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.files import ownership
from elmo_tasks.vectors import download
from elmo_tasks.vectors import pretrained as module
from elmo_tasks.vectors.pretrained import NAMED_BILMS, NamedBilm, cache_home, pretrained_files
from tests.paths import TINY_BILM

FILES = ("options.json", "weights.hdf5")
CONTENTS = {file: (TINY_BILM / file).read_bytes() for file in FILES}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that the biLM `published` is downloaded from."""
    folder = tmp_path / "server"
    folder.mkdir()
    for file, content in CONTENTS.items():
        (folder / f"elmo_{file}").write_bytes(content)
    monkeypatch.setitem(NAMED_BILMS, "published", NamedBilm(url=f"{folder.as_uri()}/elmo_"))
    # The tests of `download` have a server.
    monkeypatch.setattr(download, "_SCHEMES", ("file",))
    return folder


def in_cache(folder: Path) -> None:
    """Puts a biLM into a folder by hand."""
    folder.mkdir(parents=True)
    for file, content in CONTENTS.items():
        (folder / file).write_bytes(content)


class TestPretrainedFiles:
    def test_the_names_are_those_that_were_published(self):
        """Oracle: the addresses on the authors' page."""
        root = "https://allennlp.s3.amazonaws.com/models/elmo"
        assert {name: known.url for name, known in NAMED_BILMS.items() if known.archive is None} == {
            "small-open": None,
            "small-ko-open": None,
            "small": f"{root}/2x1024_128_2048cnn_1xhighway/elmo_2x1024_128_2048cnn_1xhighway_",
            "medium": f"{root}/2x2048_256_2048cnn_1xhighway/elmo_2x2048_256_2048cnn_1xhighway_",
            "original": f"{root}/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway_",
            "original-5.5b": f"{root}/2x4096_512_2048cnn_2xhighway_5.5B/elmo_2x4096_512_2048cnn_2xhighway_5.5B_",
        }

    def test_what_ships_needs_no_cache(self, shipped_bilm, home):
        """Oracle: its folder; no other is made."""
        assert pretrained_files("small-open") == tuple(shipped_bilm / file for file in FILES)
        assert all((shipped_bilm / file).is_file() for file in FILES)
        assert not home.exists()

    @pytest.mark.parametrize("name", [name for name, known in NAMED_BILMS.items() if known.is_shipped])
    def test_what_ships_is_a_bilm(self, name):
        """Oracle: the shape that its model card says: three layers, each with vectors of 256."""
        bilm = Bilm.from_files(*pretrained_files(name))
        assert (bilm.num_layers, bilm.get_output_dim()) == (3, 256)
        assert pretrained_files(name)[0].with_name("README.md").is_file()

    def test_a_file_is_downloaded_once(self, server, home):
        """Oracle: the bytes, also without the server; the record in the form that sha256sum reads."""
        expected = tuple(home / "published" / file for file in FILES)
        assert pretrained_files("published") == expected
        for file in FILES:
            (server / f"elmo_{file}").unlink()
        assert pretrained_files("published") == expected
        for file, name in zip(expected, FILES, strict=True):
            assert file.read_bytes() == CONTENTS[name]
            record = file.with_name(f"{name}.sha256").read_text()
            assert record == f"{hashlib.sha256(CONTENTS[name]).hexdigest()}  {name}\n"
        assert len(list((home / "published").iterdir())) == 4

    @pytest.mark.parametrize("is_known", [False, True])
    def test_a_file_that_has_changed_is_an_error(self, server, home, monkeypatch, is_known):
        """Oracle: both digests, by hashlib, and the remedy in the message, after which the file is downloaded again."""
        right, wrong = (hashlib.sha256(content).hexdigest() for content in (CONTENTS["weights.hdf5"], b"damaged"))
        if is_known:
            known = NamedBilm(url=NAMED_BILMS["published"].url, sha256=(("weights.hdf5", right),))
            monkeypatch.setitem(NAMED_BILMS, "published", known)
        _, weights = pretrained_files("published")
        weights.write_bytes(b"damaged")
        if is_known:
            # A known digest takes precedence over the record.
            weights.with_name("weights.hdf5.sha256").write_text(f"{wrong}  weights.hdf5\n")
        messages = {
            True: f"the SHA-256 of '{weights}' must be {right}, but is {wrong}",
            False: f"{weights} is damaged or was replaced: its SHA-256 is {wrong[:12]}.*says {right[:12]}",
        }
        with pytest.raises(
            ValueError, match=rf"{messages[is_known]}.* remove the folder '{home}/published', and it is"
        ):
            pretrained_files("published")
        for file in weights.parent.iterdir():
            file.unlink()
        assert pretrained_files("published")[1].read_bytes() == CONTENTS["weights.hdf5"]

    def test_a_download_must_have_the_known_digest(self, server, home, monkeypatch):
        """Oracle: the error of `download`; nothing is in the cache."""
        monkeypatch.setitem(
            NAMED_BILMS, "published", NamedBilm(url=NAMED_BILMS["published"].url, sha256=(("options.json", "0" * 64),))
        )
        with pytest.raises(ValueError, match=f"must be {'0' * 64}, but is"):
            pretrained_files("published")
        assert not list((home / "published").iterdir())

    def test_files_may_be_put_into_the_cache_by_hand(self, home):
        """Oracle: the files, of which the second use knows the digest; nothing is downloaded."""
        in_cache(home / "original")
        assert pretrained_files("original")[0] == home / "original" / "options.json"
        (home / "original" / "options.json").write_text("changed")
        with pytest.raises(ValueError, match="is damaged or was replaced"):
            pretrained_files("original")

    @pytest.mark.parametrize("is_downloaded", [False, True])
    @pytest.mark.parametrize("file", FILES)
    def test_a_file_that_is_not_that_of_a_bilm_is_not_recorded(self, server, home, file, is_downloaded):
        """Oracle: the message; there is no record, and of a download no file. The right file is accepted afterwards."""
        half = CONTENTS[file][: len(CONTENTS[file]) // 2]
        cached = home / "published" / file
        if is_downloaded:
            (server / f"elmo_{file}").write_bytes(half)
        else:
            in_cache(home / "published")
            cached.write_bytes(half)
        name = f"elmo_{file} was not downloaded whole" if is_downloaded else f"{cached}: "
        with pytest.raises(ValueError, match=name):
            pretrained_files("published")
        assert not cached.with_name(f"{file}.sha256").exists()
        assert cached.exists() != is_downloaded
        (server / f"elmo_{file}").write_bytes(CONTENTS[file])
        cached.unlink(missing_ok=True)
        assert pretrained_files("published")[FILES.index(file)].read_bytes() == CONTENTS[file]

    def test_no_more_is_downloaded_than_a_bilm_can_have(self, server, home):
        """Oracle: by hand: four bytes for each parameter of the options, and 16 MiB; 1 MiB for the options."""
        options = BilmOptions.from_file(server / "elmo_options.json")
        largest = 4 * sum(weight.numel() for weight in Bilm(options).parameters()) + 2**24
        os.truncate(server / "elmo_weights.hdf5", largest + 1)
        with pytest.raises(ConnectionError, match=rf"elmo_weights.hdf5 cannot be .*at most {largest:,} bytes, but has"):
            pretrained_files("published")
        shutil.rmtree(home)
        os.truncate(server / "elmo_options.json", 2**20 + 1)
        with pytest.raises(ConnectionError, match=r"elmo_options.json cannot be .*at most 1,048,576 bytes, but has"):
            pretrained_files("published")

    @pytest.mark.parametrize("record", [b"", b" \n", b"\xc3\x9f" * 32, b"short  weights.hdf5"])
    def test_an_unreadable_record_is_an_error(self, server, home, record):
        """Oracle: the message, with the remedy."""
        pretrained_files("published")
        (home / "published" / "weights.hdf5.sha256").write_bytes(record)
        message = r"weights\.hdf5\.sha256 must hold the SHA-256 of weights\.hdf5, .*remove the folder"
        with pytest.raises(ValueError, match=message):
            pretrained_files("published")

    @pytest.mark.parametrize("name", ["", *FILES, "options.json.sha256", "weights.hdf5.sha256"])
    def test_what_others_may_write_to_is_refused(self, server, home, monkeypatch, name):
        """Oracle: the path and both remedies in the message, one of which helps."""
        pretrained_files("published")
        path = home / "published" / name
        path.chmod(0o777)
        with pytest.raises(
            PermissionError, match=rf"'{path}' may be written by all users, .*ELMO_TASKS_ALLOW_SHARED=1"
        ):
            pretrained_files("published")
        monkeypatch.setenv("ELMO_TASKS_ALLOW_SHARED", "1")
        assert pretrained_files("published")

    def test_what_is_downloaded_is_accepted_afterwards_whatever_the_mask(self, server, monkeypatch):
        """Oracle: the second use, where no group is this user's own."""
        monkeypatch.setattr(ownership, "_is_private_group", lambda gid: False)
        mask = os.umask(0o002)
        try:
            pretrained_files("published")
        finally:
            os.umask(mask)
        assert pretrained_files("published")

    def test_a_planted_link_is_not_followed(self, server, home, tmp_path):
        """Oracle: what the links point to, which have the names of temporary files: the process's number was one."""
        (tmp_path / "mine").write_bytes(b"mine")
        (home / "published").mkdir(parents=True)
        for file in FILES:
            for name in (f"{file}.{os.getpid()}.part", f"{file}.sha256.{os.getpid()}.part", f"_tmp-{file}.sha256"):
                (home / "published" / name).symlink_to(tmp_path / "mine")
        pretrained_files("published")
        assert (tmp_path / "mine").read_bytes() == b"mine"

    def test_without_network_and_cache_the_error_says_what_to_do(self, server, home):
        """Oracle: the name, the folder, the address and the remedies in the message."""
        (server / "elmo_weights.hdf5").unlink()
        message = (
            f"the biLM 'published' is not in the cache, '{home}/published', and {server.as_uri()}/elmo_weights.hdf5 "
            "cannot be downloaded: .*Remedy: connect to the network; or put options.json and weights.hdf5 there"
        )
        with pytest.raises(ConnectionError, match=message):
            pretrained_files("published")

    @pytest.mark.parametrize("name", ["originall", "SMALL", "", Path("small")])
    def test_an_unknown_name_lists_the_known_ones(self, name, monkeypatch, tmp_path):
        """Oracle: the names in the message; a `Path` is always a folder."""
        monkeypatch.chdir(tmp_path)
        names = "small-open, small-ko-open, small, medium, original, original-5.5b"
        message = f"must be one of {names}, or a folder with options.json"
        if name == "":
            # The current folder.
            with pytest.raises(FileNotFoundError, match=r"has no options\.json"):
                pretrained_files(name)
        else:
            with pytest.raises(ValueError, match=rf"{message}.*'{re.escape(str(name))}' is neither"):
                pretrained_files(name)

    def test_a_url_is_not_taken_for_a_folder(self):
        """Oracle: the message, with the URL as it was given."""
        with pytest.raises(ValueError, match=r"a name or a folder here, but is the URL 'https://example\.org/bilm'"):
            pretrained_files("https://example.org/bilm")

    @pytest.mark.parametrize("missing", FILES)
    def test_a_folder_without_its_files_is_an_error(self, tmp_path, missing):
        """Oracle: the folder and the file in the message."""
        for file in FILES:
            if file != missing:
                (tmp_path / file).touch()
        with pytest.raises(FileNotFoundError, match=rf"'{tmp_path}' has no {missing}"):
            pretrained_files(tmp_path)

    def test_a_folder_may_be_written_in_many_ways(self, tmp_path, monkeypatch):
        """Oracle: its files; a folder with a known name needs a dot; a tilde is the home."""
        folder = tmp_path / "small"
        folder.mkdir()
        for file in FILES:
            (folder / file).touch()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path))
        for name in (folder, str(folder), "./small", "~/small"):
            assert [file.resolve() for file in pretrained_files(name)] == [folder / file for file in FILES]


class TestCacheHome:
    def test_it_is_the_variable_or_below_the_home(self, monkeypatch, home):
        """Oracle: by hand; an empty variable is as good as none."""
        assert cache_home() == home
        monkeypatch.setenv("HOME", "/home/me")
        for value in (None, ""):
            monkeypatch.setenv("ELMO_TASKS_HOME", value) if value else monkeypatch.delenv("ELMO_TASKS_HOME", False)
            assert cache_home() == Path("/home/me/.cache/elmo_tasks")


def test_no_digest_is_invented():
    """Oracle: the authors published no digests."""
    assert not any(known.sha256 for known in module.NAMED_BILMS.values())
