"""Tests of jobs whose files were damaged, or exchanged for others, between two runs."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_tasks.embed_job import job
from elmo_tasks.embed_job.formats.output_format import FORMATS
from tests.embed_job.conftest import LINES

OTHER_TEXTS = {"another text": [f"{line} ." for line in LINES], "a line short": LINES[:8]}


class Killed(BaseException):
    """An exception that no code catches, as no process catches `kill -9`."""


@pytest.fixture
def unfinished(embed, tmp_path, monkeypatch):
    """Runs a job that has all of its parts, but no output; gives the folder of the parts."""

    def run(name="out.h5", options=None, **arguments) -> Path:
        def kill(*arguments):
            raise Killed

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(job._Job, "_finish", kill)
            embed(name, options, **arguments)
        return tmp_path / f"{name}.parts"

    return run


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def content_of(output: Path) -> bytes | dict[str, bytes]:
    if output.is_file():
        return output.read_bytes()
    return {file.name: file.read_bytes() for file in output.iterdir()}


class TestParts:
    @pytest.mark.parametrize(
        ("case", "format"),
        [
            ("right shape", "hdf5"),
            ("right shape", "parquet-folder"),
            ("another text", "hdf5"),
            ("another text", "parquet-folder"),
            ("a line short", "hdf5"),
            ("another place", "hdf5"),
            ("damaged", "hdf5"),
            ("damaged", "parquet-folder"),
        ],
    )
    def test_a_part_of_something_else_is_computed_again(self, embed, unfinished, tmp_path, caplog, format, case):
        """Oracle: an undisturbed job; a warning with the name of the part."""
        if format == "parquet-folder":
            pytest.importorskip("pyarrow")
        text = tmp_path / "text.txt"
        embed("whole", format=format)
        folder = unfinished("out", format=format)
        part, other = sorted(folder.glob("part-*"))[2:0:-1]
        if case == "right shape":
            if format == "parquet-folder":
                from pyarrow import parquet as pyarrow_parquet

                pyarrow_parquet.write_table(pyarrow_parquet.read_table(part), part)
            else:
                with np.load(part) as arrays:
                    np.savez(part, **{name: array for name, array in arrays.items() if name != "origin"})
        elif case in OTHER_TEXTS:
            before = text.read_bytes()
            text.write_text("".join(f"{line}\n" for line in OTHER_TEXTS[case]), encoding="utf-8")
            shutil.copy(unfinished("other", format=format) / part.name, part)
            text.write_bytes(before)
        elif case == "another place":
            shutil.copy(other, part)
        else:
            flip(part, part.stat().st_size // 4)
        assert embed("out", format=format, resume=True).n_tokens == 9
        assert caplog.messages[-1].startswith(f"{part} must be ") and caplog.messages[-1].endswith("computed again")
        assert content_of(tmp_path / "out") == content_of(tmp_path / "whole")

    def test_a_line_is_never_lost(self, embed, unfinished, tmp_path):
        """Oracle: an undisturbed job. The origin of a part is right, but a line is gone: it is computed again."""
        folder = unfinished()
        part = folder / "part-00000001.npz"
        with np.load(part) as arrays:
            members = dict(arrays)
        words = members["sentences"].tobytes().split(b"\n")[:-1]
        members |= {"sentences": np.frombuffer(b"\n".join(words), np.uint8), "shapes": members["shapes"][:-1]}
        members["vectors"] = members["vectors"][: members["shapes"].prod(-1).sum()]
        np.savez(part, **members)
        assert embed("out.h5", resume=True).n_tokens == 5
        embed("whole.h5")
        assert content_of(tmp_path / "out.h5") == content_of(tmp_path / "whole.h5")

    @pytest.mark.parametrize("name", ["part-1e3.npz", "part-7.npz", "part-00000004.npz"])
    def test_a_file_that_is_no_part_is_named(self, embed, unfinished, name):
        """Oracle: the message; the file stays."""
        folder = unfinished()
        (folder / name).write_text("mine")
        with pytest.raises(ValueError, match=rf"out\.h5\.parts/{name} must .*: move it"):
            embed("out.h5", resume=True)
        assert (folder / name).read_text() == "mine"

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("{", "as JSON, but is damaged"),
            ("[1]", "as a JSON object, but holds a list"),
            ("[" * 100_000, "as JSON, but is damaged"),
            ("\udcff", "as JSON, but is damaged"),
        ],
        ids=["cut off", "list", "deep", "bytes"],
    )
    def test_a_job_that_cannot_be_read_is_named(self, embed, unfinished, content, message):
        """Oracle: the message and its remedy, which helps."""
        folder = unfinished()
        (folder / "_job.json").write_text(content, encoding="utf-8", errors="surrogateescape")
        with pytest.raises(ValueError, match=rf"_job\.json must hold the options of a job {message}.*--force"):
            embed("out.h5", resume=True)
        assert embed("out.h5", force=True).n_lines == len(LINES)


class TestFinishedOutput:
    @pytest.mark.parametrize("format", list(FORMATS))
    def test_it_is_verified(self, embed, tmp_path, format):
        """Oracle: by hand: a flipped bit and a missing end are errors with the file, whole ones are not."""
        if "parquet" in format:
            pytest.importorskip("pyarrow")
        embed("out", format=format)
        output = tmp_path / "out"
        path = output / "part-00000001.parquet" if output.is_dir() else output
        before = path.read_bytes()
        for place in (len(before) // 3, len(before) // 2):
            flip(path, place)
            with pytest.raises(ValueError, match=rf"{path} .*damaged.*--force"):
                embed("out", format=format, resume=True)
            path.write_bytes(before)
        path.write_bytes(before[:-1])
        with pytest.raises(ValueError, match=rf"{path} .*damaged.*--force"):
            embed("out", format=format, resume=True)
        path.write_bytes(before)
        report = embed("out", format=format, resume=True)
        assert (report.was_finished, report.n_tokens, report.n_lines) == (True, 0, len(LINES))

    def test_parts_of_a_folder_are_all_there_and_no_others(self, embed, tmp_path):
        """Oracle: the messages name the file."""
        pytest.importorskip("pyarrow")
        embed("out", format="parquet-folder")
        part = tmp_path / "out" / "part-00000003.parquet"
        shutil.copy(part, part.with_name("part-00000004.parquet"))
        with pytest.raises(ValueError, match=r"part-00000004\.parquet must not be there, since the text has 4 parts"):
            embed("out", format="parquet-folder", resume=True)
        part.with_name("part-00000004.parquet").unlink()
        part.unlink()
        with pytest.raises(FileNotFoundError, match=r"part-00000003\.parquet must be there, but is missing"):
            embed("out", format="parquet-folder", resume=True)

    def test_force_makes_a_damaged_one_again_though_it_is_killed(self, embed, unfinished, tmp_path):
        """Oracle: the first output; the older one has the same job, but is damaged."""
        embed("out.h5")
        before = (tmp_path / "out.h5").read_bytes()
        flip(tmp_path / "out.h5", len(before) // 2)
        unfinished("out.h5", force=True)
        assert not embed("out.h5", resume=True).was_finished
        assert (tmp_path / "out.h5").read_bytes() == before
        assert embed("out.h5", resume=True).was_finished

    def test_every_bit_of_hdf5_counts(self, embed, tmp_path):
        """Oracle: the content before; a flipped bit is an error of h5py or changes nothing, at 100 places."""
        embed("out.h5")
        path = tmp_path / "out.h5"
        before = path.read_bytes()

        def content() -> list[object]:
            with h5py.File(path) as file:
                arrays = [file[str(index)][()] for index in range(len(LINES))]
                return [*(array.tobytes() for array in arrays), *file["sentences"][:], file["sentence_to_index"][0]]

        expected, n_errors = content(), 0
        for place in range(0, len(before), len(before) // 100):
            flip(path, place)
            try:
                assert content() == expected, f"byte {place} is damaged, but is read"
            except (OSError, RuntimeError, KeyError):
                n_errors += 1
            path.write_bytes(before)
        assert n_errors > 50


class TestFilesOfOthers:
    def test_a_link_is_not_emptied(self, embed, tmp_path):
        """Oracle: the message; the file in the other folder stays."""
        (tmp_path / "theirs").mkdir()
        (tmp_path / "theirs" / "part-00000000.npz").write_text("mine")
        (tmp_path / "out.h5.parts").symlink_to("theirs")
        for arguments in ({"force": True}, {"resume": True}, {}):
            with pytest.raises(FileExistsError, match=r"out\.h5\.parts must not be a link, but is one to theirs"):
                embed("out.h5", **arguments)
        assert (tmp_path / "theirs" / "part-00000000.npz").read_text() == "mine"

    def test_a_folder_of_this_name_is_not_emptied(self, embed, tmp_path):
        """Oracle: the message; the file in it, whose name is that of a part."""
        (tmp_path / "out.h5.parts").mkdir()
        (tmp_path / "out.h5.parts" / "part-00000000.npz").write_text("mine")
        for arguments in ({"force": True}, {"resume": True}):
            with pytest.raises(FileExistsError, match=r"out\.h5\.parts must .* made, but it has no _job\.json"):
                embed("out.h5", **arguments)
        assert (tmp_path / "out.h5.parts" / "part-00000000.npz").read_text() == "mine"

    @pytest.mark.parametrize("format", ["hdf5", "parquet-folder"])
    def test_a_folder_named_as_one_that_is_replaced_is_not_removed(self, embed, tmp_path, format):
        """Oracle: the file in it; an output that is a file needs no such folder, another is refused."""
        if format == "parquet-folder":
            pytest.importorskip("pyarrow")
        (tmp_path / "out.parts-replaced").mkdir()
        (tmp_path / "out.parts-replaced" / "mine").touch()
        for arguments in ({}, {"resume": True}, {"force": True}):
            if format == "hdf5":
                embed("out", format=format, **arguments)
                continue
            with pytest.raises(FileExistsError, match=r"out\.parts-replaced must .* but it has no _job\.json: move it"):
                embed("out", format=format, **arguments)
        assert (tmp_path / "out.parts-replaced" / "mine").exists()

    def test_files_in_a_folder_that_is_replaced_stay(self, embed, tmp_path, caplog):
        """Oracle: the file, and the warning that says where it is."""
        pytest.importorskip("pyarrow")
        embed("out", format="parquet-folder")
        (tmp_path / "out" / "_notes.txt").write_text("mine")
        embed("out", format="parquet-folder", force=True)
        assert (tmp_path / "out.parts-replaced" / "_notes.txt").read_text() == "mine"
        assert "out.parts-replaced stays" in caplog.text

    def test_a_link_that_leads_nowhere_is_not_replaced(self, embed, tmp_path):
        """Oracle: the message; the link."""
        (tmp_path / "out.h5").symlink_to("nowhere")
        with pytest.raises(FileExistsError, match=r"out\.h5 must not be there yet, but is there"):
            embed("out.h5")
        assert (tmp_path / "out.h5").is_symlink()


class TestFullDisk:
    @pytest.mark.parametrize(
        ("where", "format"),
        [
            ("part", "hdf5"),
            ("part", "parquet-folder"),
            ("output", "hdf5"),
            ("output", "npz"),
            ("output", "parquet"),
            ("checksum", "hdf5"),
        ],
    )
    def test_an_error_names_the_file(self, embed, unfinished, tmp_path, monkeypatch, format, where):
        """Oracle: the message; Linux's error of `fsync`, as a full network disk reports it, has no name."""
        if "parquet" in format:
            pytest.importorskip("pyarrow")
        expected = {"part": "out.parts/part-00000000.", "output": "out'", "checksum": "out.sha256'"}[where]
        wanted = {"part": "part-", "output": "-out", "checksum": "out.sha256"}[where]
        fsync = os.fsync

        def fail(descriptor: int) -> None:
            if Path(os.readlink(f"/proc/self/fd/{descriptor}")).name.rpartition("_tmp-")[2].find(wanted) > 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            fsync(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(
                OSError, match=r"\[Errno 28\] No space left on device: .*out.*What is done is kept"
            ) as e:
                embed("out", format=format)
        assert expected in str(e.value) and "_tmp-" not in str(e.value)
        assert embed("out", format=format, resume=True).n_lines == len(LINES)

    @pytest.mark.parametrize("format", ["hdf5", "npz", "parquet"])
    def test_a_disk_that_is_full_while_it_is_written(self, embed, unfinished, monkeypatch, format):
        """Oracle: Linux's device that is always full; the message names the output."""
        if format == "parquet":
            pytest.importorskip("pyarrow")
        write = FORMATS[format].write

        def to_full_disk(path: Path, *arguments: object) -> None:
            path.symlink_to("/dev/full")
            write(path, *arguments)

        unfinished("out", format=format)
        monkeypatch.setitem(FORMATS, format, replace(FORMATS[format], write=to_full_disk))
        with pytest.raises(OSError, match=r"\[Errno 28\] .*/out'\. What is done is kept in "):
            embed("out", format=format, resume=True)
