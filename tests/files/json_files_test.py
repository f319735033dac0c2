import os
import subprocess

import pytest

from elmo_tasks.files.json_files import file_digest, read_json, text_digest, write_json


class TestJsonFiles:
    def test_a_value_is_read_as_it_was_written(self, tmp_path):
        value = {"words": ["눈", "\u2028"], "n": 1, "share": 0.1}
        write_json(tmp_path / "a.json", value)
        assert read_json(tmp_path / "a.json") == value

    @pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
    def test_an_error_names_the_file(self, tmp_path, content):
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.json"):
            read_json(tmp_path / "a.json")


class TestDigests:
    def test_a_digest_equals_sha256sum(self, tmp_path):
        (tmp_path / "a").write_text("눈\n" * 100_000)
        found = subprocess.run(
            ["sha256sum", tmp_path / "a"], capture_output=True, text=True, check=True
        ).stdout
        assert file_digest(tmp_path / "a") == text_digest("눈\n" * 100_000) == found.split()[0]

    def test_a_pipe_has_no_digest(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="pipe"):
            file_digest(tmp_path / "pipe")
