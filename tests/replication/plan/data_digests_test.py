"""Tests of the digests of data."""

import pytest

from elmo_tasks.replication.plan.data_digests import digest, inputs_of, with_roots_named


class TestDigest:
    def test_it_is_of_the_content_and_not_of_the_place(self, tmp_path):
        """Oracle: equal and unequal files, of one and of several mebibytes."""
        for name, content in {"a": b"x", "b": b"x", "c": b"y", "d": b"x" * 3_000_000, "e": b"x" * 3_000_001}.items():
            (tmp_path / name).write_bytes(content)
        a, b, c, d, e = (digest(tmp_path / name) for name in "abcde")
        assert a == b
        assert len({a, c, d, e}) == 4

    def test_a_folder_is_its_files_with_their_names(self, tmp_path):
        """Oracle: a copy, and a file that has another name."""
        for folder, name in (("a", "x"), ("b", "x"), ("c", "y")):
            (tmp_path / folder / "deep").mkdir(parents=True)
            (tmp_path / folder / "deep" / name).write_text("text")
        assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")

    def test_what_is_not_there_is_named_with_the_remedy(self, tmp_path):
        """Oracle: the message."""
        with pytest.raises(FileNotFoundError, match=r"absent.*--data"):
            digest(tmp_path / "absent")
        with pytest.raises(FileNotFoundError, match=r"glove.*nlp\.stanford\.edu/projects/glove"):
            digest(tmp_path / "glove" / "glove.6B.100d.txt")


class TestInputsOf:
    def test_files_below_the_roots_are_named_by_them(self, tmp_path):
        """Oracle: by hand; the biLM lies below the data here, and a URL is its own digest."""
        (tmp_path / "bilm").mkdir()
        for name in ("train.txt", "bilm/weights.hdf5"):
            (tmp_path / name).write_text(name)
        roots = {str(tmp_path): "data", str(tmp_path / "bilm"): "biLM", "https://a.b/c": "biLM"}
        config = {
            "train": f"{tmp_path}/train.txt",
            "model": [{"file": f"{tmp_path}/bilm/weights.hdf5", "url": "https://a.b/c/weights.hdf5", "n": 1}],
        }
        assert with_roots_named(config, roots) == {
            "train": "data/train.txt",
            "model": [{"file": "biLM/weights.hdf5", "url": "biLM/weights.hdf5", "n": 1}],
        }
        assert inputs_of({"train": config["train"]}, roots) == {"data/train.txt": digest(tmp_path / "train.txt")}
        assert inputs_of(["https://a.b/c/w"], roots) == {"biLM/w": "https://a.b/c/w"}
