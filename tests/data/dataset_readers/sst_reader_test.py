from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance

from elmo_tasks.data import SstReader
from tests.data.dataset_readers.instances import label_of, words_in, write

TREE = "(3 (2 It) (4 (2 's) (4 good)))"


def content_of(instance: Instance) -> tuple[list[str], str | None]:
    words = words_in(instance["tokens"])
    assert instance["metadata"].metadata == {"words": words}
    return words, label_of(instance)


def read(path: Path, content: str) -> list[tuple[list[str], str | None]]:
    return list(map(content_of, SstReader().read(write(path, content))))


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
        params = {"type": "sst_tokens", "use_subtrees": min_phrase_length is not None}
        allennlp_reader = DatasetReader.from_params(Params(params))
        expected = []
        for instance in allennlp_reader.read(file):
            words = [unescaped.get(word, word) for word in words_in(instance["tokens"])]
            if len(words) >= (min_phrase_length or 1):
                expected.append((words, label_of(instance)))
        assert len(expected) >= 60
        reader = SstReader(min_phrase_length=min_phrase_length)
        assert list(map(content_of, reader.read(file))) == expected

    def test_words_are_unescaped(self, path):
        unescaped = {
            "-LRB-": "(",
            "-RRB-": ")",
            "``": '"',
            "''": '"',
            "-LSB-": "[",
            "-RCB-": "}",
            r"and\/or": "and/or",
            r"\*": "*",
            "'": "'",
            "--": "--",
            "O'Brien": "O'Brien",
            "'s": "'s",
        }
        leaves = " ".join(f"(2 {word})" for word in unescaped)
        assert read(path, f"(2 {leaves})") == [(list(unescaped.values()), "2")]

    def test_a_number_with_its_fraction_is_two_words(self, path):
        """
        The treebank writes them as one word, with a no-break space, for which no word vector
        exists.
        """
        assert read(path, "(2 (2 8\u00a01\\/2) (2 hours))") == [(["8", "1/2", "hours"], "2")]

    @pytest.mark.parametrize("content", [f"{TREE}\r\n{TREE}\r\n", f"\ufeff\n{TREE}\n \n\n  {TREE}"])
    def test_line_endings_do_not_matter(self, path, content):
        assert read(path, content) == [(["It", "'s", "good"], "3")] * 2
