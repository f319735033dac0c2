"""Tests of elmo_tasks.verify."""

import gzip
import json
import lzma
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_tasks.__main__ import main
from elmo_tasks.files.checksums import write_checksum
from elmo_tasks.verify import add_arguments, run, verify
from tests.paths import TINY_BILM


def write_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("empty", shape=(0, 3), maxshape=(None, 3), chunks=(1, 3))
        file.create_dataset("a", data=np.random.default_rng(0).random(5000, np.float32), fletcher32=True)


def write_parquet(path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    numbers = np.random.default_rng(0).random(5000)
    parquet.write_table(pyarrow.table({"a": numbers}), path, write_page_checksum=True, compression="none")


# What writes a file of each kind, and whether its own format has a checksum over all of it.
KINDS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "model.tar.gz": (lambda path: path.write_bytes(gzip.compress(bytes(range(256)) * 99)), True),
    "text.xz": (lambda path: path.write_bytes(lzma.compress(bytes(range(256)) * 99)), True),
    "part.npz": (lambda path: np.savez(path, a=np.arange(5000)), True),
    "best.th": (lambda path: torch.save({"a": torch.arange(5000)}, path), True),
    "out.h5": (write_hdf5, True),
    "out.parquet": (write_parquet, False),
    "record.json": (lambda path: path.write_text(json.dumps({"a": 1})), False),
}


@pytest.fixture(params=KINDS)
def path(request, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    KINDS[request.param][0](path)
    return path


def states(path: Path) -> list[str]:
    return [finding.state for finding in verify(path)]


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


class TestVerify:
    def test_a_whole_file_is_whole_or_at_least_readable(self, path):
        """Oracle: whether the format has a checksum over all of it."""
        assert states(path) == ["whole" if KINDS[path.name][1] else "readable"]

    def test_torchs_form_of_before_2020_can_only_be_read(self, tmp_path):
        """Oracle: by hand; what has neither form is damaged."""
        torch.save({"a": torch.arange(9)}, tmp_path / "old.th", _use_new_zipfile_serialization=False)
        assert states(tmp_path / "old.th") == ["readable"]
        (tmp_path / "old.th").write_bytes(b"damaged")
        assert states(tmp_path / "old.th") == ["damaged"]

    def test_a_checksum_next_to_it_makes_any_file_whole(self, path):
        """Oracle: by hand; so does a file of no format that is known."""
        write_checksum(path)
        assert states(path) == ["whole"]
        other = path.parent / "vectors.bin"
        other.write_bytes(b"x")
        write_checksum(other)
        assert states(other) == ["whole"]
        # As `embed --format npz` may write it.
        named_otherwise = path.parent / "vectors.h5"
        with open(named_otherwise, "wb") as file:
            np.savez(file, vectors=np.zeros(3))
        assert states(named_otherwise) == ["damaged"]
        write_checksum(named_otherwise)
        assert states(named_otherwise) == ["whole"]

    def test_a_flipped_byte_in_the_middle_is_damage(self, path):
        """Oracle: by hand; JSON has no checksum, and its middle is its syntax."""
        flip(path, path.stat().st_size // 2)
        assert states(path) == ["damaged"]

    def test_a_file_that_was_cut_off_is_damaged(self, path):
        """Oracle: by hand."""
        path.write_bytes(path.read_bytes()[:-1])
        assert states(path) == ["damaged"]

    def test_a_changed_file_is_not_what_its_checksum_says(self, path):
        """Oracle: by hand."""
        write_checksum(path)
        path.unlink()
        KINDS["record.json" if path.name != "record.json" else "text.xz"][0](path)
        (finding,) = verify(path)
        assert finding.state == "damaged" and "SHA-256" in finding.reason

    def test_a_folder_is_all_that_is_below_it(self, tmp_path):
        """Oracle: by hand: two files that can be checked, one of them damaged, one that is missing."""
        (tmp_path / "below").mkdir()
        for name in ("a.npz", "below/b.npz", "gone.bin"):
            KINDS["part.npz"][0](tmp_path / "x.npz")
            (tmp_path / "x.npz").rename(tmp_path / name)
        write_checksum(tmp_path / "gone.bin")
        (tmp_path / "gone.bin").unlink()
        (tmp_path / "notes.txt").write_text("anything")
        flip(tmp_path / "below" / "b.npz", 5000)
        found = {str(finding.path.relative_to(tmp_path)): finding.state for finding in verify(tmp_path)}
        assert found == {"a.npz": "whole", "below/b.npz": "damaged", "gone.bin": "damaged"}

    def test_a_part_that_a_folder_has_lost_is_missing(self, tmp_path):
        """Oracle: by hand: seven lines in parts of three; an unfinished job may lack all; records without numbers."""
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        for name, job in (
            ("made", {"lines of the text": 7, "part_lines": 3}),
            ("a.parts", {"lines of the text": 7, "part_lines": 3}),
            ("odd", {"lines of the text": 7, "part_lines": 0}),
            ("others", {"name": "cron"}),
            ("list", []),
        ):
            (tmp_path / name).mkdir()
            (tmp_path / name / "_job.json").write_text(json.dumps(job))
        for number in (0, 2):
            parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "made" / f"part-{number:08}.parquet")
        findings = list(verify(tmp_path))
        assert len({finding.path for finding in findings}) == len(findings) == 8
        found = {str(f.path.relative_to(tmp_path)): f.reason for f in findings if f.state == "damaged"}
        assert sorted(found) == ["list/_job.json", "made/part-00000001.parquet", "odd/_job.json"]
        assert (
            found["made/part-00000001.parquet"].startswith("missing: ") and "how many lines" in found["odd/_job.json"]
        )

    def test_a_folder_of_long_lines_has_more_parts(self, tmp_path):
        """Oracle: by hand: each of four long lines is a part, where two lines a part were asked for; two are lost."""
        pytest.importorskip("pyarrow")
        text, folder = tmp_path / "text.txt", tmp_path / "folder"
        text.write_text("".join(" ".join([f"word{number}"] * 80) + "\n" for number in range(4)))
        options = ["--format", "parquet-folder", "--part-lines", "2", "--bilm", str(TINY_BILM)]
        assert main(["embed", str(text), str(folder), *options]) == 0
        assert len(list(folder.glob("part-*"))) == 4
        assert "damaged" not in {finding.state for finding in verify(folder)}
        for number in (2, 3):
            (folder / f"part-{number:08}.parquet").unlink()
        (damaged,) = (finding for finding in verify(folder) if finding.state == "damaged")
        assert damaged.path.name == "part-00000002.parquet"

    def test_without_its_library_a_file_is_not_checked_but_others_are(self, tmp_path, monkeypatch, capsys):
        """Oracle: by hand."""
        KINDS["part.npz"][0](tmp_path / "a.npz")
        (tmp_path / "b.parquet").write_bytes(b"PAR1")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        found = {finding.path.name: (finding.state, finding.reason) for finding in verify(tmp_path)}
        assert found["a.npz"][0] == "whole"
        assert found["b.parquet"] == ("unchecked", "pyarrow is not installed: `pip install pyarrow`")
        assert main(["verify", str(tmp_path)]) == 1
        shown = capsys.readouterr()
        assert "a.npz" in shown.out and "1 of 2 files could not be checked" in shown.err


class TestCommand:
    def call(self, *line: object) -> None:
        parser = ArgumentParser()
        add_arguments(parser)
        run(parser.parse_args([*map(str, line)]))

    def test_it_prints_a_line_for_each_file(self, tmp_path, capsys):
        """Oracle: by hand."""
        KINDS["part.npz"][0](tmp_path / "a.npz")
        self.call(tmp_path)
        assert capsys.readouterr().out == f"whole     {tmp_path}/a.npz  (CRC of each member)\n"

    def test_damage_is_an_error_after_all_were_checked(self, tmp_path, capsys):
        """Oracle: by hand; with --quiet only damaged files are shown."""
        for name in ("a.npz", "b.npz"):
            KINDS["part.npz"][0](tmp_path / name)
        flip(tmp_path / "a.npz", 5000)
        with pytest.raises(ValueError, match="1 of 2 files are damaged"):
            self.call(tmp_path, "--quiet")
        assert capsys.readouterr().out.startswith("damaged   ")

    def test_nothing_to_check_is_an_error(self, tmp_path):
        """Oracle: the message; whoever mistypes a path must not believe that all is well."""
        with pytest.raises(ValueError, match="no file with a checksum"):
            self.call(tmp_path)
        with pytest.raises(FileNotFoundError, match="nowhere must be a file or a folder"):
            self.call(tmp_path / "nowhere")
