"""Tests of the HDF5 file."""

import errno
import json

import h5py
import numpy as np
import pytest

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.embed_job.formats.hdf5 import job_of_hdf5, write_hdf5
from tests.embed_job.parts import JOB, N_LINES, PARTS, SENTENCES, VECTORS


class TestWriteHdf5:
    def test_each_line_has_its_vectors_and_its_words(self, tmp_path):
        """Oracle: the parts, by h5py alone."""
        write_hdf5(tmp_path / "out.h5", PARTS, N_LINES, JOB)
        with h5py.File(tmp_path / "out.h5") as file:
            assert set(file) == {*map(str, range(N_LINES)), "sentences", "sentence_to_index"}
            assert [sentence.decode() for sentence in file["sentences"][:]] == SENTENCES
            for index, expected in enumerate(VECTORS):
                found = file[str(index)]
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                np.testing.assert_array_equal(found[()], expected)

    def test_of_equal_sentences_the_last_has_the_place(self, tmp_path):
        """Oracle: by hand, as AllenNLP's readers take it: a JSON object in an array of one text."""
        write_hdf5(tmp_path / "out.h5", PARTS, N_LINES, JOB)
        with h5py.File(tmp_path / "out.h5") as file:
            assert file["sentence_to_index"].shape == (1,)
            assert json.loads(file["sentence_to_index"][0]) == {"a/b ç": "3", "": "1", "c": "2"}

    @pytest.mark.parametrize("n_letters", [3, 100_000], ids=["even", "uneven"])
    def test_strings_are_padded_unless_that_takes_too_much(self, tmp_path, n_letters):
        """Oracle: the sentences; each array has a checksum, and strings that would take 20 MB for 0.1 MB have none."""
        sentences = ["ç" * n_letters, *["a b"] * 199]
        part = EmbeddedPart(0, sentences, [np.zeros((1, 4), np.float32)] * 200)
        write_hdf5(tmp_path / "out.h5", [part], 200, JOB)
        with h5py.File(tmp_path / "out.h5") as file:
            assert [sentence.decode() for sentence in file["sentences"]] == sentences
            assert file["0"].fletcher32 and file["sentence_to_index"].fletcher32
            assert file["sentences"].fletcher32 == (n_letters == 3)

    def test_a_full_disk_is_an_error_with_the_file(self):
        """Oracle: Linux's device that is always full; the number and the name in the error."""
        with pytest.raises(OSError) as raised:
            write_hdf5("/dev/full", PARTS, N_LINES, JOB)
        assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, "/dev/full")


class TestJobOfHdf5:
    def test_it_is_the_job_that_made_the_file(self, tmp_path):
        """Oracle: the job; `None` for a file that h5py made."""
        write_hdf5(tmp_path / "ours.h5", PARTS, N_LINES, JOB)
        h5py.File(tmp_path / "other.h5", "w").close()
        assert job_of_hdf5(tmp_path / "ours.h5") == JOB
        assert job_of_hdf5(tmp_path / "other.h5") is None
