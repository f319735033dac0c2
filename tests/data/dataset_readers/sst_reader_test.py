import random
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


def random_tree(generator: random.Random, n_words: int) -> tuple[str, list[tuple[list[str], str]]]:
    """A binary tree of words, and all its phrases from the root down, left before right."""
    label = generator.choice("01234")
    if n_words == 1:
        word = generator.choice(["good", "n't", "Ærø", "...", "😀"])
        return f"({label} {word})", [([word], label)]
    n_left = generator.randrange(1, n_words)
    left, phrases_left = random_tree(generator, n_left)
    right, phrases_right = random_tree(generator, n_words - n_left)
    words = phrases_left[0][0] + phrases_right[0][0]
    return f"({label} {left} {right})", [(words, label), *phrases_left, *phrases_right]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.txt"


class TestSstReader:
    @pytest.mark.parametrize("min_phrase_length", [None, 1, 2, 4])
    def test_phrases_match_the_trees(self, path, min_phrase_length):
        generator = random.Random(0)
        trees = [random_tree(generator, generator.randrange(1, 12)) for _ in range(40)]
        found = read(path, "\n".join(tree for tree, _ in trees), min_phrase_length=min_phrase_length)
        if min_phrase_length is None:
            expected = [phrases[0] for _, phrases in trees]
        else:
            expected = [phrase for _, phrases in trees for phrase in phrases if len(phrase[0]) >= min_phrase_length]
        assert found == expected

    @pytest.mark.parametrize("use_subtrees", [False, True])
    def test_the_phrases_match_allennlps(self, fixtures_root, use_subtrees):
        import allennlp_models.classification  # noqa: F401

        unescaped = {"-LRB-": "(", "-RRB-": ")", "``": '"', "''": '"', r"and\/or": "and/or", r"1\/2": "1/2"}
        file = str(fixtures_root / "sst" / "train.txt")
        theirs = DatasetReader.from_params(Params({"type": "sst_tokens", "use_subtrees": use_subtrees}))
        expected = [
            ([unescaped.get(token.text, token.text) for token in instance["tokens"].tokens], instance["label"].label)
            for instance in theirs.read(file)
        ]
        reader = SstReader(min_phrase_length=1 if use_subtrees else None)
        assert [content_of(instance) for instance in reader.read(file)] == expected
        assert len(expected) > 60 * (1 + 10 * use_subtrees) - 1

    def test_words_are_unescaped(self, path):
        words = ["-LRB-", "-RRB-", "``", "''", "-LSB-", "-RCB-", r"and\/or", r"\*", "'", "--", "O'Brien", "'s"]
        expected = ["(", ")", '"', '"', "[", "}", "and/or", "*", "'", "--", "O'Brien", "'s"]
        tree = "(2 " + " ".join(f"(2 {word})" for word in words) + ")"
        assert read(path, tree) == [(expected, "2")]

    def test_a_number_with_its_fraction_is_two_words(self, path):
        """The treebank writes them as one word, with a no-break space, for which no word vector exists."""
        assert read(path, "(2 (2 8\u00a01\\/2) (2 hours))") == [(["8", "1/2", "hours"], "2")]

    @pytest.mark.parametrize("content", [f"{TREE}\r\n{TREE}\r\n", f"\ufeff\n{TREE}\n \n\n  {TREE}"])
    def test_line_endings_do_not_matter(self, path, content):
        assert read(path, content) == [(["It", "'s", "good"], "3")] * 2
