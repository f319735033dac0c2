from pathlib import Path
from typing import Any

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance

from elmo_tasks.data import SstReader

TREE = "(3 (2 It) (4 (2 's) (4 good)))"


def content_of(instance: Instance) -> tuple[list[str], str | None]:
    words = [token.text for token in instance["tokens"].tokens]
    assert instance["metadata"].metadata == {"words": words}
    return words, instance["label"].label if "label" in instance.fields else None


def read(path: Path, content: str | bytes, **kwargs: Any) -> list[tuple[list[str], str | None]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [content_of(instance) for instance in SstReader(**kwargs).read(str(path))]


class TestSstReader:
    @pytest.mark.parametrize("min_phrase_length", [None, 1, 2, 4])
    def test_the_phrases_match_allennlps(self, fixtures_root, min_phrase_length):
        import allennlp_models.classification  # noqa: F401

        unescaped = {
            "-LRB-": "(",
            "-RRB-": ")",
            "``": '"',
            "''": '"',
            r"and\/or": "and/or",
            r"1\/2": "1/2",
        }
        file = str(fixtures_root / "sst" / "train.txt")
        theirs = DatasetReader.from_params(
            Params({"type": "sst_tokens", "use_subtrees": min_phrase_length is not None})
        )
        expected = [
            (
                [unescaped.get(token.text, token.text) for token in instance["tokens"].tokens],
                instance["label"].label,
            )
            for instance in theirs.read(file)
        ]
        expected = [
            (words, label) for words, label in expected if len(words) >= (min_phrase_length or 1)
        ]
        found = SstReader(min_phrase_length=min_phrase_length).read(file)
        assert [content_of(instance) for instance in found] == expected
        assert len(expected) >= 60

    def test_words_are_unescaped(self, path):
        words = [
            "-LRB-",
            "-RRB-",
            "``",
            "''",
            "-LSB-",
            "-RCB-",
            r"and\/or",
            r"\*",
            "'",
            "--",
            "O'Brien",
            "'s",
        ]
        expected = ["(", ")", '"', '"', "[", "}", "and/or", "*", "'", "--", "O'Brien", "'s"]
        tree = "(2 " + " ".join(f"(2 {word})" for word in words) + ")"
        assert read(path, tree) == [(expected, "2")]

    def test_a_number_with_its_fraction_is_two_words(self, path):
        """
        The treebank writes them as one word, with a no-break space, for which no word vector
        exists.
        """
        assert read(path, "(2 (2 8\u00a01\\/2) (2 hours))") == [(["8", "1/2", "hours"], "2")]

    @pytest.mark.parametrize("content", [f"{TREE}\r\n{TREE}\r\n", f"\ufeff\n{TREE}\n \n\n  {TREE}"])
    def test_line_endings_do_not_matter(self, path, content):
        assert read(path, content) == [(["It", "'s", "good"], "3")] * 2
