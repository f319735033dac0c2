import logging
import random
import re
from pathlib import Path
from typing import Any

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Instance, Token, Vocabulary

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
    def test_phrases_are_those_of_the_trees(self, path, min_phrase_length):
        """Oracle: random trees, written together with all their phrases."""
        generator = random.Random(0)
        trees = [random_tree(generator, generator.randrange(1, 12)) for _ in range(40)]
        found = read(path, "\n".join(tree for tree, _ in trees), min_phrase_length=min_phrase_length)
        if min_phrase_length is None:
            expected = [phrases[0] for _, phrases in trees]
        else:
            expected = [phrase for _, phrases in trees for phrase in phrases if len(phrase[0]) >= min_phrase_length]
        assert found == expected

    @pytest.mark.parametrize("use_subtrees", [False, True])
    def test_the_phrases_are_those_of_the_reader_of_allennlp(self, fixtures_root, use_subtrees):
        """Oracle: AllenNLP's `sst_tokens` on the data that ships, but for the words that it leaves escaped."""
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

    def test_words_come_out_as_they_are_written_elsewhere(self, path):
        """Oracle: by hand; the single quote of a genitive and a dash stay."""
        words = ["-LRB-", "-RRB-", "``", "''", "-LSB-", "-RCB-", r"and\/or", r"\*", "'", "--", "O'Brien", "'s"]
        expected = ["(", ")", '"', '"', "[", "}", "and/or", "*", "'", "--", "O'Brien", "'s"]
        tree = "(2 " + " ".join(f"(2 {word})" for word in words) + ")"
        assert read(path, tree) == [(expected, "2")]

    def test_a_number_with_its_fraction_is_two_words(self, path):
        """Oracle: by hand: the treebank writes it as one, with a no-break space, which no word vector has."""
        assert read(path, "(2 (2 8\u00a01\\/2) (2 hours))") == [(["8", "1/2", "hours"], "2")]

    @pytest.mark.parametrize("content", [f"{TREE}\r\n{TREE}\r\n", f"\ufeff\n{TREE}\n \n\n  {TREE}"])
    def test_ends_of_lines_do_not_matter(self, path, content):
        """Oracle: the words by hand."""
        assert read(path, content) == [(["It", "'s", "good"], "3")] * 2

    @pytest.mark.parametrize(
        ("line", "rest"),
        [
            ("(3 (2 It) (4 works)", "must be a tree like .*closing brackets are missing"),
            ("(3 (2 It) (4 works)))", r"must be a tree like .*\('\)' follows its end\)"),
            (f"{TREE} {TREE}", "must be a tree like"),
            (f"{TREE} good", "must be a tree like"),
            (f"good {TREE}", "must be a tree like"),
            ("It works", "must be a tree like .*it begins with 'It works'"),
            ("3 (2 It) (4 works)", "must be a tree like"),
            (")", "must be a tree like"),
            ("(3", "must be a tree like .*closing brackets are missing"),
            ("(", r"but here is '\('"),
            ("()", r"sentiment from 0 to 4 and words or nodes below it, but here is '\(\)'"),
            ("(3)", r"sentiment from 0 to 4 and words or nodes below it, but here is '\(3\)'"),
            ("(3 (2 It) (4))", r"but here is '\(4\)'"),
            ("(5 (2 It) (4 works))", r"but here is '\(5 \(2 It\) \(4 works\)\)'"),
            ("(3 (2 It) (-1 works))", r"but here is '\(-1 works\)"),
            ("(3 (2 It) (good works))", r"but here is '\(good works\)"),
            ("(3 (2 It) ((2 really) (4 works)))", r"but here is '\(\(2 really\) \(4 works\)\)"),
            ("(33 (2 It) (4 works))", "but here is '"),
            ("((3 (2 It) (4 works)))", "but here is '"),
        ],
    )
    def test_a_broken_tree_is_named(self, path, line, rest):
        """Oracle: the message says file, line, rule and value."""
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line 3: .*{rest}"):
            read(path, f"{TREE}\n\n{line}\n{TREE}\n")

    def test_nodes_may_be_nested_deeply_and_not_without_end(self, path):
        """Oracle: by hand; 100,000 brackets took minutes when a tree was walked once for each of its nodes."""
        words = ["a"] * 900
        assert read(path, "(2 (2 a) " * 899 + "(2 a)" + ")" * 899) == [(words, "2")]
        for line in ("(2 " * 100_000, "(2 " * 100_000 + "a" + ")" * 100_000):
            with pytest.raises(ValueError, match=f"{path}, line 1: .* nested less than 1000 times"):
                read(path, line)

    def test_a_backslash_is_a_letter(self, path):
        """Oracle: by hand; some versions of nltk take one before a bracket for an escape, others do not."""
        assert read(path, "(4 (2 a) (2 \\))") == [(["a", "\\"], "4")]

    def test_other_broken_lines_are_named(self, path):
        """Oracle: the message says file and line."""
        with pytest.raises(ValueError, match=f"{path}, line 2: the file must be UTF-8, but byte 7"):
            read(path, TREE.encode() + b"\n(2 caf\xe9)\n")
        with pytest.raises(ValueError, match=f"{path}, line 1: .* carriage return alone"):
            read(path, f"{TREE}\r{TREE}")

    def test_the_message_of_a_long_line_is_short(self, path):
        """Oracle: the length of the message."""
        with pytest.raises(ValueError) as error:
            read(path, "(3 " + TREE * 1000)
        assert len(str(error.value)) < 600

    @pytest.mark.parametrize("content", ["", "\n \n"])
    def test_a_file_without_trees_is_an_error(self, path, content):
        """Oracle: the message, which must name the file."""
        with pytest.raises(ValueError, match=f"{path} must hold at least one phrase, but holds none in 0 sentences"):
            read(path, content)

    def test_a_file_of_short_phrases_is_an_error(self, path):
        """Oracle: the message, which must say the least length."""
        with pytest.raises(ValueError, match="at least one phrase of 4 tokens, but holds none in 2 sentences"):
            read(path, f"{TREE}\n{TREE}\n", min_phrase_length=4)

    def test_instances_are_counted_in_the_log(self, path, caplog):
        """Oracle: five phrases of each sentence, by hand."""
        with caplog.at_level(logging.INFO, logger="elmo_tasks"):
            read(path, f"{TREE}\n{TREE}\n", min_phrase_length=1)
        assert f"{path}: 10 instances of 2 sentences" in caplog.messages

    @pytest.mark.parametrize("length", [0, -1])
    def test_a_length_must_be_positive(self, length):
        """Oracle: the message says rule and value."""
        with pytest.raises(ConfigurationError, match=f"min_phrase_length must be at least 1, or null, but is {length}"):
            SstReader(min_phrase_length=length)

    def test_text_to_instance_takes_words_and_tokens(self):
        """Oracle: by hand."""
        for words in (["It", "works"], [Token("It"), Token("works")]):
            assert content_of(SstReader().text_to_instance(words)) == (["It", "works"], None)
            assert content_of(SstReader().text_to_instance(words, "3")) == (["It", "works"], "3")
        with pytest.raises(ValueError, match="the input: a sentence must have at least one word"):
            SstReader().text_to_instance([])

    def test_a_label_that_was_not_in_the_training_is_named(self, path):
        """Oracle: the message: file, line, and the labels of the training."""
        path.write_text(f"{TREE}\n(1 no)\n")
        known, unknown = SstReader().read(str(path))
        with pytest.raises(ValueError, match=rf"{path}, line 2: .*the training \(3\), but is '1'"):
            unknown["label"].index(Vocabulary.from_instances([known]))
