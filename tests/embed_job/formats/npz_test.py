"""Tests of the archives of NumPy."""

import zipfile

import numpy as np
import pytest

from elmo_tasks.embed_job.formats.npz import job_of_npz, write_npz
from tests.embed_job.parts import JOB, N_LINES, PARTS, SENTENCES, VECTORS


class TestWriteNpz:
    def test_each_line_has_its_vectors(self, tmp_path):
        """Oracle: the parts, by `np.load` alone, which is not to unpickle anything."""
        write_npz(tmp_path / "out.npz", PARTS, N_LINES, JOB)
        with np.load(tmp_path / "out.npz", allow_pickle=False) as arrays:
            assert set(arrays) == {*map(str, range(N_LINES)), "job.json", "sentences.txt"}
            for index, expected in enumerate(VECTORS):
                assert (arrays[str(index)].dtype, arrays[str(index)].shape) == (expected.dtype, expected.shape)
                np.testing.assert_array_equal(arrays[str(index)], expected)
            assert arrays["sentences.txt"].decode().split("\n") == [*SENTENCES, ""]

    def test_equal_jobs_make_equal_files(self, tmp_path):
        """Oracle: the same date in all members, which is not today's, and the bytes of a second file."""
        for name in ("a.npz", "b.npz"):
            write_npz(tmp_path / name, PARTS, N_LINES, JOB)
        with zipfile.ZipFile(tmp_path / "a.npz") as archive:
            assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


class TestJobOfNpz:
    def test_it_is_the_job_that_made_the_file(self, tmp_path):
        """Oracle: the job; `None` for a file that NumPy made."""
        write_npz(tmp_path / "ours.npz", PARTS, N_LINES, JOB)
        np.savez(tmp_path / "other.npz", VECTORS[0])
        assert job_of_npz(tmp_path / "ours.npz") == JOB
        assert job_of_npz(tmp_path / "other.npz") is None

    @pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04"])
    def test_another_file_is_an_error(self, tmp_path, content):
        """Oracle: the message names the file."""
        (tmp_path / "out.npz").write_bytes(content)
        with pytest.raises(
            ValueError, match=r"out\.npz must be an archive of NumPy's, but is something else, or damaged"
        ):
            job_of_npz(tmp_path / "out.npz")
