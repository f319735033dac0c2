"""Tests of the digests of data."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.files import checksums
from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication.plan import data_digests
from elmo_tasks.replication.plan.data_digests import digest, inputs_of, with_roots_named
from tests.bilm.many_langs.models import write_model


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "results" / "data_digests.json"


class TestDigest:
    def test_it_is_of_the_content_and_not_of_the_place(self, tmp_path, record):
        """Oracle: SHA-256 by hashlib, of files of one and of several mebibytes; the last two differ in the middle."""
        contents = {"a": b"x", "b": b"x", "c": b"y", "d": bytes(5_000_000)}
        contents["e"] = contents["d"][:2_500_000] + b"x" + contents["d"][2_500_001:]
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content)
            assert digest(tmp_path / name, record) == hashlib.sha256(content).hexdigest()[:16]
        assert not record.exists()

    def test_a_folder_is_its_files_with_their_names(self, tmp_path, record):
        """Oracle: a copy, and a file that has another name."""
        for folder, name in (("a", "x"), ("b", "x"), ("c", "y")):
            (tmp_path / folder / "deep").mkdir(parents=True)
            (tmp_path / folder / "deep" / name).write_text("text")
        a, b, c = (digest(tmp_path / name, record) for name in "abc")
        assert a == b != c

    def test_weights_of_several_files_are_all_of_them(self, tmp_path, record):
        """Oracle: another embedder, another dictionary, and another file."""
        folder = write_model(tmp_path / "model")
        found = {digest(folder / "encoder.pkl", record)}
        (folder / "README.md").write_text("new")
        assert {digest(folder / "encoder.pkl", record)} == found
        for name in ("token_embedder.pkl", "char.dic", "word.dic", "encoder.pkl"):
            with open(folder / name, "ab") as file:
                file.write(b"\n")
            found.add(digest(folder / "encoder.pkl", record))
        assert len(found) == 5

    def test_what_is_not_there_is_named_with_the_remedy(self, tmp_path, record):
        """Oracle: the message."""
        with pytest.raises(FileNotFoundError, match=r"absent.*--data"):
            digest(tmp_path / "absent", record)
        with pytest.raises(FileNotFoundError, match=r"glove.*nlp\.stanford\.edu/projects/glove"):
            digest(tmp_path / "glove" / "glove.6B.100d.txt", record)


class TestRecord:
    """Of a file that counts as large, in a process that has hashed nothing yet."""

    @pytest.fixture
    def hashed(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        """The files that were read, one after the other."""
        read: list[Path] = []

        def counted(path: Path) -> str:
            read.append(path)
            return original(path)

        original: Callable[[Path], str] = checksums.sha256_of
        monkeypatch.setattr(data_digests, "sha256_of", counted)
        monkeypatch.setattr(checksums, "_KNOWN", {})
        monkeypatch.setattr(data_digests, "_LARGE", 1)
        monkeypatch.setattr(data_digests, "_SECONDS_TO_SETTLE", -1)
        return read

    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        (tmp_path / "data").write_bytes(b"before")
        return tmp_path / "data"

    def test_a_file_that_has_not_changed_is_read_once(self, hashed, file, record):
        """Oracle: the reads, and the record, which has the file and lies with the runs."""
        assert digest(file, record) == digest(file, record)
        assert hashed == [file]
        assert list(read_sealed(record)) == [str(file)]
        assert {path.name for path in file.parent.iterdir()} == {"data", "results"}

    def test_a_file_that_has_changed_is_read_again(self, hashed, file, record, monkeypatch):
        """Oracle: hashlib, after a change in place that keeps size, inode and the time of the last change."""
        digest(file, record)
        before = file.stat()
        with open(file, "r+b") as opened:
            opened.write(b"AFTER!")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        monkeypatch.setattr(checksums, "_KNOWN", {})
        assert (file.stat().st_size, file.stat().st_ino) == (before.st_size, before.st_ino)
        assert digest(file, record) == hashlib.sha256(b"AFTER!").hexdigest()[:16]

    def test_a_file_that_was_just_written_is_not_remembered(self, hashed, file, record, monkeypatch):
        """Oracle: there is no record: within the resolution of its time the file may change again."""
        monkeypatch.setattr(data_digests, "_SECONDS_TO_SETTLE", 3600)
        digest(file, record)
        assert not record.exists()

    @pytest.mark.parametrize("damage", [b"", b"{", b"[" * 100_000, b'{"data": {}}'])
    def test_a_damaged_record_is_made_again(self, hashed, file, record, caplog, damage):
        """Oracle: hashlib, and the warning."""
        record.parent.mkdir()
        record.write_bytes(damage)
        assert digest(file, record) == hashlib.sha256(b"before").hexdigest()[:16]
        assert "digests of data are computed again" in caplog.text
        assert list(read_sealed(record)) == [str(file)]

    def test_an_entry_of_another_form_is_not_believed(self, hashed, file, record):
        """Oracle: hashlib."""
        record.parent.mkdir()
        write_sealed(record, {str(file): ["x"]})
        assert digest(file, record) == hashlib.sha256(b"before").hexdigest()[:16]

    def test_a_record_that_cannot_be_written_is_a_warning(self, hashed, file, tmp_path, caplog):
        """Oracle: hashlib, and the warning, where a file is in the place of the folder."""
        (tmp_path / "results").write_text("")
        assert digest(file, tmp_path / "results" / "x.json") == hashlib.sha256(b"before").hexdigest()[:16]
        assert "will be computed again, since it cannot be kept" in caplog.text


class TestInputsOf:
    def test_files_below_the_roots_are_named_by_them(self, tmp_path, record):
        """Oracle: by hand; the biLM lies below the data here, and a URL is its own digest."""
        (tmp_path / "bilm").mkdir()
        for name in ("train.txt", "bilm/weights.hdf5"):
            (tmp_path / name).write_text(name)
        roots = {str(tmp_path): "data", str(tmp_path / "bilm"): "biLM", "https://a.b/c": "biLM"}
        config = {
            "train": f"{tmp_path}/train.txt",
            "model": [{"file": f"{tmp_path}/bilm/weights.hdf5", "url": "https://a.b/c/weights.hdf5", "n": 1}],
        }
        assert with_roots_named(config, roots) == {
            "train": "data/train.txt",
            "model": [{"file": "biLM/weights.hdf5", "url": "biLM/weights.hdf5", "n": 1}],
        }
        expected = {"data/train.txt": digest(tmp_path / "train.txt", record)}
        assert inputs_of({"train": config["train"]}, roots, record) == expected
        assert inputs_of({"train": config["train"]}, roots, record, without={"data"}) == {}
        assert inputs_of(["https://a.b/c/w"], roots, record) == {"biLM/w": "https://a.b/c/w"}

    @pytest.mark.parametrize("without", [(), {"data"}])
    def test_data_and_weights_from_elsewhere_are_named_by_their_paths(self, tmp_path, record, without):
        """Oracle: by hand: outputs, and what is not there, have no digest."""
        (tmp_path / "mine.txt").write_text("mine")
        mine = f"{tmp_path}/mine.txt"
        config = {"train_data_path": mine, "test_data_path": f"{tmp_path}/none", "model": {"log": mine}}
        found = inputs_of(config, {"/data": "data"}, record, without=without)
        assert found == {mine: digest(tmp_path / "mine.txt", record)}
