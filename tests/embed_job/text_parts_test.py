"""Tests of the lines of a text and of its parts."""

import gzip
import lzma

import pytest

from elmo_tasks.embed_job.text_parts import cut_into_parts, summarize

PACKERS = {".txt": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


class TestCutIntoParts:
    def test_parts_have_so_many_lines(self):
        """Oracle: by hand."""
        parts = list(cut_into_parts(["a", "", "b", "c", "d"], 2))
        assert [(part.number, part.first, part.lines) for part in parts] == [
            (0, 0, ["a", ""]),
            (1, 2, ["b", "c"]),
            (2, 4, ["d"]),
        ]

    def test_long_lines_make_shorter_parts(self):
        """Oracle: 200 characters a line: 3 lines of 150 are more than 2 lines may have."""
        parts = list(cut_into_parts(["x" * 150, "x" * 150, "x" * 500, "y", "z"], 2))
        assert [[len(line) for line in part.lines] for part in parts] == [[150, 150], [500], [1, 1]]


class TestSummarize:
    def test_it_counts_lines_and_words(self, tmp_path):
        """Oracle: by hand; a compressed copy has the same digest, another text another."""
        paths = [tmp_path / f"text{suffix}" for suffix in PACKERS]
        for path in paths:
            path.write_bytes(PACKERS[path.suffix](b"a b\n\nc\n"))
        first, *others = (summarize(path, 2) for path in paths)
        assert [(part.first, part.n_lines, part.n_words) for part in first.parts] == [(0, 2, 2), (2, 1, 1)]
        assert first.n_lines == 3
        assert others == [first, first]
        for changed in (b"a b\nc\n", b"a b\n\nd\n", b"a\nb\nc\n"):
            paths[0].write_bytes(changed)
            assert summarize(paths[0], 2).digest != first.digest

    def test_a_file_without_lines_is_an_error(self, tmp_path):
        """Oracle: the message names the file."""
        (tmp_path / "text.txt").write_bytes(b"")
        with pytest.raises(ValueError, match=r"text\.txt must hold at least one line"):
            summarize(tmp_path / "text.txt", 2)
