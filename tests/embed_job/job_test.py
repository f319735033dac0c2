"""Tests of the job: its outputs, and its interruptions."""

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.embed_job import job_folder
from elmo_tasks.embed_job.job import embed_file
from elmo_tasks.embed_job.options import EmbedOptions
from elmo_tasks.files import atomic_files
from tests.embed_job.conftest import LINES, content_of_hdf5


class Killed(BaseException):
    """An exception that no code catches, as no process catches `kill -9`."""


@pytest.fixture
def limit_files():
    """Sets the largest size of a file, in bytes: writing more fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestEmbedFile:
    def test_cut_words_and_another_script_are_said_once(self, text, embed, caplog):
        """Oracle: by hand: two of six words in two parts are cut; all letters are Hangul, the biLM is of English."""
        text.write_text(f"나는 {'가' * 17}\n\n\n나 {'나' * 17} 가 .\n", encoding="utf-8")
        embed("out.npz", {"bilm": "small-open"})
        script, cut = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
        assert script.startswith(f"of the letters in {text}, 100% are of scripts that the biLM 'small-open' has never")
        assert cut.startswith(f"{text}: 2 of 6 words (33.33%) are longer than 48 bytes")

    @pytest.mark.parametrize("options", [{}, {"layers": "all"}, {"pool": "mean"}, {"layers": 0, "gamma": 2.0}], ids=str)
    def test_hdf5_has_a_dataset_for_every_line(self, embed, tmp_path, tiny_bilm, options):
        """Oracle: `Elmo.embed` of the words; keys, sentences and map by hand."""
        report = embed("out.h5", options)
        words = [line.split() for line in LINES]
        expected = Elmo.from_pretrained(tiny_bilm).embed(words, **options)
        with h5py.File(tmp_path / "out.h5") as file:
            assert set(file) == {*map(str, range(len(LINES))), "sentences", "sentence_to_index"}
            for index, vectors in enumerate(expected):
                assert file[str(index)].shape == vectors.shape
                np.testing.assert_allclose(file[str(index)][()], vectors, atol=1e-5)
            assert [text.decode() for text in file["sentences"]] == [" ".join(sentence) for sentence in words]
            places = json.loads(file["sentence_to_index"][0])
        assert places == {
            "The cat sat .": "4",
            "": "9",
            "a/b c / d": "2",
            "Ja": "3",
            "« Ça va ? »": "6",
            "0": "7",
            "one two three": "8",
        }
        assert (report.n_lines, report.n_tokens) == (10, sum(map(len, words)))
        assert report.n_bytes == (tmp_path / "out.h5").stat().st_size
        assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "out.h5", "out.h5.sha256"}

    def test_npz_has_the_same(self, embed, tmp_path):
        """Oracle: the HDF5 file."""
        embed("out.h5")
        embed("out.npz")
        with h5py.File(tmp_path / "out.h5") as file, np.load(tmp_path / "out.npz") as arrays:
            for index in range(len(LINES)):
                np.testing.assert_array_equal(arrays[str(index)], file[str(index)][()])
            assert arrays["sentences.txt"].decode().split("\n")[:-1] == [" ".join(line.split()) for line in LINES]

    @pytest.mark.parametrize("format", ["parquet", "parquet-folder"])
    def test_parquet_has_the_same(self, embed, tmp_path, format):
        """Oracle: the HDF5 file."""
        parquet = pytest.importorskip("pyarrow.parquet")
        embed("out.h5", {"layers": "all", "dtype": "float16"})
        embed("out.parquet", {"layers": "all", "dtype": "float16"}, format=format)
        rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
        assert [row["index"] for row in rows] == list(range(len(LINES)))
        assert [row["sentence"] for row in rows] == [" ".join(line.split()) for line in LINES]
        with h5py.File(tmp_path / "out.h5") as file:
            for row in rows:
                vectors = np.array(row["vectors"], np.float16).reshape(row["shape"])
                np.testing.assert_array_equal(vectors, file[str(row["index"])][()])
        assert not (tmp_path / "out.parquet.parts").exists()

    def test_float16_is_rounded_float32(self, embed, tmp_path):
        """Oracle: NumPy."""
        for dtype in ("float32", "float16"):
            embed(f"{dtype}.h5", {"dtype": dtype})
        with h5py.File(tmp_path / "float32.h5") as exact, h5py.File(tmp_path / "float16.h5") as halved:
            for index in map(str, range(len(LINES))):
                assert halved[index].dtype == np.float16
                np.testing.assert_array_equal(halved[index][()], exact[index][()].astype(np.float16))

    def test_what_float16_cannot_hold_is_an_error(self, embed):
        """Oracle: the message names the line and the remedy."""
        with pytest.raises(
            ValueError, match=r"float16 holds numbers up to 65504, but in the vectors of line 1 .*use float32"
        ):
            embed("out.h5", {"dtype": "float16", "gamma": 1e8})

    def test_words_can_be_found_by_spacys_rules(self, embed, text, tmp_path):
        """Oracle: by hand."""
        pytest.importorskip("spacy")
        text.write_text("It's late, isn't it?\n")
        report = embed("out.h5", {"tokenize": True})
        with h5py.File(tmp_path / "out.h5") as file:
            assert file["sentences"][0].decode() == "It 's late , is n't it ?"
            assert len(file["0"]) == report.n_tokens == 8

    def test_a_compressed_text_has_the_same_vectors(self, embed, text, tmp_path, tiny_bilm):
        """Oracle: the text as it is."""
        embed("out.h5")
        (tmp_path / "text.txt.gz").write_bytes(gzip.compress(text.read_bytes()))
        embed_file(
            tmp_path / "text.txt.gz", tmp_path / "other.h5", EmbedOptions(tiny_bilm, part_lines=3), show_progress=False
        )
        assert content_of_hdf5(tmp_path / "other.h5") == content_of_hdf5(tmp_path / "out.h5")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"layers": 7}, "layers"),
            ({"pool": "sum"}, "pool"),
            ({"weights": (1.0,)}, "weights"),
            ({"batch_tokens": 0}, "batch_tokens"),
            ({"bilm": "large"}, "large"),
            ({"precision": "int8"}, "precision"),
        ],
        ids=str,
    )
    def test_wrong_options_are_an_error_before_anything_is_written(self, embed, tmp_path, options, message):
        """Oracle: the message names what is wrong; the folder."""
        with pytest.raises(ValueError, match=message):
            embed("out.h5", options)
        assert {path.name for path in tmp_path.iterdir()} == {"text.txt"}

    def test_a_precision_that_the_device_lacks_is_one_too(self, embed, tmp_path, monkeypatch):
        """Oracle: the message; the folder."""
        monkeypatch.setattr("elmo_tasks.bilm.lstm.precision.supports_bf16", lambda *args: False)
        with pytest.raises(ValueError, match="precision 'bf16' needs a device"):
            embed("out.h5", {"precision": "bf16"})
        assert {path.name for path in tmp_path.iterdir()} == {"text.txt"}

    def test_a_broken_line_is_an_error_before_anything_is_written(self, embed, text, tmp_path):
        """Oracle: the message; the folder."""
        text.write_bytes(b"a b c\n" * 10 + b"\xff\n")
        with pytest.raises(ValueError, match=r"text\.txt, line 11: "):
            embed("out.h5")
        assert {path.name for path in tmp_path.iterdir()} == {"text.txt"}

    @pytest.mark.parametrize("name", ["out.npz", "out.npz.sha256"])
    def test_the_text_is_not_replaced(self, tmp_path, tiny_bilm, name):
        """Oracle: the message and the text, also with `force`."""
        (tmp_path / name).write_text("a b\n")
        with pytest.raises(ValueError, match="must be another file than what is read"):
            embed_file(tmp_path / name, tmp_path / "out.npz", EmbedOptions(bilm=str(tiny_bilm)), force=True)
        assert (tmp_path / name).read_text() == "a b\n"

    def test_vectors_that_are_not_finite_are_an_error(self, embed):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="vectors must be finite, but those of line 1 are not"):
            embed("out.h5", {"gamma": 1e300})

    def test_only_the_home_folder_is_meant_by_a_tilde(self, tmp_path, tiny_bilm, monkeypatch):
        """Oracle: the files: a text whose name begins with one, in this folder, and vectors in the home folder."""
        (tmp_path / "home").mkdir()
        (tmp_path / "~draft.txt").write_text("a b\n")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        embed_file(Path("~draft.txt"), Path("~/out.npz"), EmbedOptions(str(tiny_bilm)))
        assert (tmp_path / "home" / "out.npz").exists()

    def test_workers_are_at_least_one(self, embed):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="workers must be at least 1, but are 0"):
            embed("out.h5", workers=0)

    def test_a_text_that_changes_meanwhile_is_an_error(self, embed, text, monkeypatch):
        """Oracle: the message; a text that grows after its first part."""
        sync = atomic_files.sync

        def grow(path: Path) -> None:
            sync(path)
            if "part-" in path.name:
                text.write_text(text.read_text() + "more\n")

        monkeypatch.setattr(atomic_files, "sync", grow)
        with pytest.raises(ValueError, match="must not change during the job, but did: start again with --force"):
            embed("out.h5")


class TestAnInterruptedJob:
    @pytest.mark.parametrize("is_after", [False, True])
    @pytest.mark.parametrize("step", range(7))
    def test_it_resumes_wherever_it_was_killed(self, embed, tmp_path, monkeypatch, step, is_after):
        """Oracle: an undisturbed job. The steps are those after which a file is there: manifest, four parts, output,
        its checksum."""
        embed("whole.h5")
        n_calls = 0
        replace = os.replace

        def kill(source: str, target: str) -> None:
            nonlocal n_calls
            n_calls += 1
            if n_calls == step + 1 and not is_after:
                raise Killed
            replace(source, target)
            if n_calls == step + 1:
                raise Killed

        monkeypatch.setattr(atomic_files.os, "replace", kill)
        with pytest.raises(Killed):
            embed("out.h5")
        assert (tmp_path / "out.h5").exists() == (step + is_after >= 6)
        embed("out.h5", resume=True)
        assert content_of_hdf5(tmp_path / "out.h5") == content_of_hdf5(tmp_path / "whole.h5")
        # The manifest and each part once, the output and its checksum.
        assert n_calls == 7 + (not is_after)
        assert not (tmp_path / "out.h5.parts").exists()

    @pytest.mark.parametrize("step", range(6))
    def test_a_folder_half_removed_is_removed(self, embed, tmp_path, monkeypatch, step):
        """Oracle: the folder; the output stays as it is. The steps are four parts, the manifest and the lock."""
        remove, unlink = job_folder.JobFolder.remove, Path.unlink
        n_calls = 0

        def kill(path: Path, missing_ok: bool = False) -> None:
            nonlocal n_calls
            n_calls += path.exists()
            if n_calls == step + 1:
                raise Killed
            unlink(path, missing_ok)

        def remove_half(folder: job_folder.JobFolder) -> None:
            monkeypatch.setattr(Path, "unlink", kill)
            remove(folder)

        with pytest.raises(Killed), monkeypatch.context() as patch:
            patch.setattr(job_folder.JobFolder, "remove", remove_half)
            embed("out.h5")
        monkeypatch.setattr(Path, "unlink", unlink)
        before = content_of_hdf5(tmp_path / "out.h5")
        report = embed("out.h5", resume=True)
        assert (report.n_tokens, report.was_finished) == (0, True)
        assert content_of_hdf5(tmp_path / "out.h5") == before
        assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "out.h5", "out.h5.sha256"}

    @pytest.mark.slow
    def test_a_process_is_killed(self, embed, text, tmp_path, tiny_bilm):
        """Oracle: an undisturbed job; `kill -9` by itself as soon as the second part is there."""
        text.write_text("".join(f"{number} {line}\n" for number in range(30) for line in LINES))
        embed("whole.h5")
        code = (
            "import os, signal, sys\n"
            "from elmo_tasks.__main__ import main\n"
            "replace = os.replace\n"
            "def replace_and_die(source, target):\n"
            "    replace(source, target)\n"
            "    if str(target).endswith('part-00000001.npz'):\n"
            "        os.kill(os.getpid(), signal.SIGKILL)\n"
            "os.replace = replace_and_die\n"
            "main(sys.argv[1:])"
        )
        arguments = [text, tmp_path / "out.h5", "--bilm", tiny_bilm, "--part-lines", "3"]
        killed = subprocess.run([sys.executable, "-c", code, "embed", *map(str, arguments)])
        assert killed.returncode == -signal.SIGKILL
        assert (tmp_path / "out.h5.parts" / "part-00000001.npz").exists() and not (tmp_path / "out.h5").exists()
        report = embed("out.h5", resume=True)
        assert 0 < report.n_tokens < sum(len(line.split()) + 1 for line in LINES) * 30
        assert content_of_hdf5(tmp_path / "out.h5") == content_of_hdf5(tmp_path / "whole.h5")

    @pytest.mark.parametrize("name", ["out.h5", "out.npz", "out.parquet"])
    @pytest.mark.parametrize("limit", [900, 4200], ids=["part", "output"])
    def test_a_full_disk_keeps_what_is_done(self, embed, tmp_path, limit_files, name, limit):
        """Oracle: the message and its remedy; the resumed job and an undisturbed one."""
        if name.endswith("parquet"):
            pytest.importorskip("pyarrow")
        embed(f"whole-{name}", {"layers": "all"})
        limit_files(limit)
        with pytest.raises(OSError, match=r"What is done is kept in .*out\..*\.parts: make room.*--resume"):
            embed(name, {"layers": "all"})
        assert not (tmp_path / name).exists()
        limit_files(resource.RLIM_INFINITY)
        done = len(list((tmp_path / f"{name}.parts").glob("part-*")))
        assert done == (0 if limit == 900 else 4)
        assert not list((tmp_path / f"{name}.parts").glob("_tmp-*"))
        embed(name, {"layers": "all"}, resume=True)
        assert (tmp_path / name).read_bytes() == (tmp_path / f"whole-{name}").read_bytes()

    def test_a_disk_without_room_for_the_output_is_found_before_it_is_written(self, embed, tmp_path, monkeypatch):
        """Oracle: the message; parts that stay."""
        monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
        with pytest.raises(OSError, match=r"needs about [\d,]+ bytes .* but the disk has 10\. What is done is kept"):
            embed("out.h5")
        assert len(list((tmp_path / "out.h5.parts").glob("part-*"))) == 4

    def test_a_damaged_part_is_named_and_computed_again(self, embed, tmp_path, monkeypatch, caplog):
        """Oracle: the warning; the words of its three lines; an undisturbed job."""
        with monkeypatch.context() as patch, pytest.raises(OSError):
            patch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
            embed("out.h5")
        part = tmp_path / "out.h5.parts" / "part-00000002.npz"
        part.write_bytes(b"PK")
        assert embed("out.h5", resume=True).n_tokens == 9
        assert "part-00000002.npz must be a part that this program wrote, but is damaged" in caplog.text
        embed("whole.h5")
        assert content_of_hdf5(tmp_path / "out.h5") == content_of_hdf5(tmp_path / "whole.h5")
