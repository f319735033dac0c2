"""Tests of elmo_tasks.compat.allennlp_fixes.word_vectors."""

import gzip

import pytest
from allennlp.modules.token_embedders.embedding import EmbeddingsTextFile

from elmo_tasks.files.text_lines import MAX_LINE_BYTES


class TestLimitLinesOfWordVectors:
    @pytest.mark.parametrize("header", ["", "2 2\n"])
    @pytest.mark.parametrize("pack", [bytes, gzip.compress])
    def test_lines_come_as_before(self, tmp_path, header, pack):
        """Oracle: by hand: a first line of two numbers is no vector."""
        path = tmp_path / ("vectors.txt" if pack is bytes else "vectors.gz")
        path.write_bytes(pack(f"{header}a 1 2\nb 3 4".encode()))
        with EmbeddingsTextFile(str(path)) as file:
            assert [*iter(file.readline, "b 3 4")] == ["a 1 2\n"] and file.num_tokens == (2 if header else None)

    @pytest.mark.parametrize("before", ["", "a 1 2\n"])
    def test_a_line_without_end_is_an_error(self, tmp_path, before):
        """Oracle: the message, with file and line."""
        path = tmp_path / "vectors.gz"
        path.write_bytes(gzip.compress(before.encode() + b"x" * (2 * MAX_LINE_BYTES)))
        line = 2 if before else 1
        with pytest.raises(ValueError, match=rf"vectors\.gz, line {line}: a line must have a word and its vector"):
            for _ in EmbeddingsTextFile(str(path)):
                pass
