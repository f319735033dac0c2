"""Tests of the files of parts."""

import numpy as np
import pytest

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.embed_job.formats.part_file import PartOrigin, numbers_of_parts, part_path, read_part, write_part

PART = EmbeddedPart(
    6,
    ["a/b ç", "", "c"],
    [np.arange(8, dtype=np.float16).reshape(2, 4), np.zeros((0, 4), np.float16), np.ones((1, 4), np.float16)],
)
ORIGIN = PartOrigin(job="0123", lines="4567", first=6, n_lines=3)


class TestReadPart:
    def test_what_was_written_is_read(self, tmp_path):
        """Oracle: the part."""
        path = part_path(tmp_path, 2, "npz")
        write_part(path, PART, ORIGIN)
        found = read_part(path, ORIGIN)
        assert (found.first, found.sentences) == (PART.first, PART.sentences)
        for array, expected in zip(found.vectors, PART.vectors, strict=True):
            assert (array.dtype, array.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(array, expected)

    def test_a_part_of_one_blank_line_is_read_too(self, tmp_path):
        """Oracle: by hand."""
        path = part_path(tmp_path, 0, "npz")
        origin = PartOrigin("0123", "89", 0, 1)
        write_part(path, EmbeddedPart(0, [""], [np.zeros((0, 4), np.float32)]), origin)
        found = read_part(path, origin)
        assert (found.sentences, [array.shape for array in found.vectors]) == ([""], [(0, 4)])

    @pytest.mark.parametrize(
        "damage", [lambda data: data[:100], lambda data: b"", lambda data: data[:-200] + b"x" * 200]
    )
    def test_a_damaged_file_is_an_error_with_its_name(self, tmp_path, damage):
        """Oracle: the message."""
        path = part_path(tmp_path, 0, "npz")
        write_part(path, PART, ORIGIN)
        path.write_bytes(damage(path.read_bytes()))
        with pytest.raises(ValueError, match=r"part-00000000\.npz must be .* damaged \("):
            read_part(path, ORIGIN)


class TestNumbersOfParts:
    def test_only_whole_parts_of_the_kind_count(self, tmp_path):
        """Oracle: by hand."""
        for name in ("part-00000003.npz", "part-123456789.npz", "_tmp-0-part-00000004.npz", "part-00000005.parquet"):
            (tmp_path / name).touch()
        assert numbers_of_parts(tmp_path, "npz") == {3, 123456789}
