"""Tests of JSON files with a checksum."""

import json
from pathlib import Path

import pytest

from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import (
    check_listed_file,
    is_sealed,
    json_sha256,
    listed_files,
    read_json,
    read_sealed,
    write_sealed,
)
from elmo_tasks.verify import verify

CONTENT = {"b": [1, 0.1, None, "é\ud800"], "a": {"nan": "x"}}


class TestSealed:
    def test_it_is_read_as_it_was_written(self, tmp_path):
        """Oracle: the content; the order of keys, and white space, are no part of it."""
        path = tmp_path / "a.json"
        write_sealed(path, CONTENT)
        assert read_sealed(path) == CONTENT and is_sealed(read_json(path))
        path.write_text(json.dumps(read_json(path), sort_keys=True))
        assert read_sealed(path) == CONTENT
        assert json_sha256(CONTENT) == json_sha256(dict(reversed(CONTENT.items()))) != json_sha256({})

    @pytest.mark.parametrize("content", [b"", b"[", b"{}", b"1", b"\xff\xfe", b"[" * 100_000, b'{"a": 1}'])
    def test_another_file_is_named(self, tmp_path, content):
        """Oracle: the message."""
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.json must be "):
            read_sealed(tmp_path / "a.json")

    def test_a_changed_value_is_noticed(self, tmp_path):
        """Oracle: the message, and verify's finding."""
        path = tmp_path / "a.json"
        write_sealed(path, CONTENT)
        assert [finding.state for finding in verify(path)] == ["whole"]
        path.write_text(path.read_text().replace("0.1", "0.2"))
        with pytest.raises(ValueError, match=r"a\.json is damaged or was changed"):
            read_sealed(path)
        assert [finding.state for finding in verify(path)] == ["damaged"]


class TestListedFiles:
    @pytest.mark.parametrize("files", [[], {"a": 1}, {"": "0"}, {"/etc/passwd": "0"}, {"b/../../c": "0"}])
    def test_only_files_of_the_folder_are_listed(self, files):
        """Oracle: the message; a list of a stranger must not name what is hashed."""
        with pytest.raises(ValueError, match=r"x\.json must list files"):
            listed_files(Path("x.json"), {"files": files})

    def test_each_is_compared_with_its_checksum(self, tmp_path):
        """Oracle: by hand: a whole file, a changed one, and one that is not there."""
        for name in ("whole", "changed"):
            (tmp_path / name).write_text(name)
        digests = {name: sha256_of(tmp_path / name) for name in ("whole", "changed")}
        write_sealed(tmp_path / "x.json", {"files": {**digests, "below/absent": "0"}})
        (tmp_path / "changed").write_text("CHANGED")
        found = {finding.path.name: finding.state for finding in verify(tmp_path)}
        assert found == {"x.json": "whole", "whole": "whole", "changed": "damaged", "absent": "damaged"}
        check_listed_file(tmp_path / "whole", digests["whole"], tmp_path / "x.json")
        with pytest.raises(ValueError, match=r"changed is damaged or was replaced: .* but x.json says"):
            check_listed_file(tmp_path / "changed", digests["changed"], tmp_path / "x.json")
