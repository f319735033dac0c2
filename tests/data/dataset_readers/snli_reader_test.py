import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.data.tokenizers import WhitespaceTokenizer

from elmo_tasks.data import SnliReader
from elmo_tasks.data.fields import without_gold

PAIR = {"gold_label": "neutral", "sentence1": "A man isn't here.", "sentence2": "It rains"}
WORDS = (["A", "man", "is", "n't", "here", "."], ["It", "rains"])
COLUMNS = ("gold_label", "sentence1", "sentence2")


def content_of(instance: Instance) -> tuple[list[str], list[str], str | None]:
    premise, hypothesis = ([token.text for token in instance[name].tokens] for name in ("premise", "hypothesis"))
    assert instance["metadata"].metadata == {"premise_tokens": premise, "hypothesis_tokens": hypothesis}
    return premise, hypothesis, instance["label"].label if "label" in instance.fields else None


def read(path: Path, content: str | bytes, **kwargs: Any) -> list[tuple[list[str], list[str], str | None]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [content_of(instance) for instance in SnliReader(**kwargs).read(str(path))]


def lines(*pairs: dict[str, Any]) -> str:
    return "".join(json.dumps(pair) + "\n" for pair in pairs)


def table(*pairs: dict[str, Any], columns: tuple[str, ...] = COLUMNS) -> str:
    rows = [columns, *([pair[column] for column in columns] for pair in pairs)]
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.jsonl"


class TestSnliReader:
    @pytest.mark.parametrize("layout", [lines, table])
    def test_both_layouts_have_the_same_pairs(self, path, layout):
        """Oracle: the words and labels by hand."""
        content = layout(PAIR, {**PAIR, "gold_label": "entailment"})
        assert read(path, content) == [(*WORDS, "neutral"), (*WORDS, "entailment")]

    def test_the_two_files_of_the_same_pairs_are_equal(self, fixtures_root):
        """Oracle: the other layout of the data that ships, which has more columns; 24 pairs have a label."""
        one, other = (
            [content_of(instance) for instance in SnliReader().read(str(fixtures_root / "snli" / f"dev.{suffix}"))]
            for suffix in ("jsonl", "txt")
        )
        assert one == other
        assert len(one) == 24

    def test_the_pairs_are_those_of_the_reader_of_allennlp(self, fixtures_root):
        """Oracle: AllenNLP's `snli` on the data that ships, with the same tokenizer."""
        import allennlp_models.pair_classification  # noqa: F401

        file = str(fixtures_root / "snli" / "train.jsonl")
        theirs = DatasetReader.from_params(
            Params({"type": "snli", "tokenizer": {"type": "spacy_blank"}, "combine_input_fields": False})
        )
        expected = [
            (
                [token.text for token in instance["premise"].tokens],
                [token.text for token in instance["hypothesis"].tokens],
                instance["label"].label,
            )
            for instance in theirs.read(file)
        ]
        assert len(expected) == 90
        assert [content_of(instance) for instance in SnliReader().read(file)] == expected

    @pytest.mark.parametrize("layout", [lines, table])
    def test_pairs_without_agreement_are_skipped_and_counted(self, path, layout, caplog):
        """Oracle: the pairs and the line of the log, by hand; such a pair may have no words."""
        unclear = {**PAIR, "gold_label": "-", "sentence2": ""}
        with caplog.at_level(logging.INFO, logger="elmo_tasks"):
            assert len(read(path, layout(unclear, PAIR, unclear, PAIR, unclear))) == 2
        assert f"{path}: 2 pairs, and 3 skipped whose label is '-'" in caplog.messages

    @pytest.mark.parametrize("layout", [lines, table])
    def test_pairs_without_labels_are_for_prediction(self, path, layout):
        """Oracle: by hand."""
        pair = {key: value for key, value in PAIR.items() if key != "gold_label"}
        arguments = {} if layout is lines else {"columns": COLUMNS[1:]}
        assert read(path, layout(pair, **arguments)) == [(*WORDS, None)]

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\n \n\n"])
    @pytest.mark.parametrize("layout", [lines, table])
    def test_ends_of_lines_do_not_matter(self, path, layout, end):
        """Oracle: the same pairs, also with a byte order mark, and without the end of the last line."""
        content = "\ufeff" + layout(PAIR, PAIR).replace("\n", end)
        assert read(path, content) == read(path, content.rstrip()) == [(*WORDS, "neutral")] * 2

    def test_quotes_in_a_table_are_words(self, path):
        """Oracle: by hand: only a tab separates columns."""
        pair = {**PAIR, "sentence1": '"Go', "sentence2": 'say "'}
        assert read(path, table(pair)) == [(['"', "Go"], ["say", '"'], "neutral")]

    def test_labels_and_tokenizer_can_be_others(self, path):
        """Oracle: by hand: the two labels of RTE, white space."""
        content = lines({**PAIR, "gold_label": "not_entailment"})
        found = read(path, content, labels=["entailment", "not_entailment"], tokenizer=WhitespaceTokenizer())
        assert found == [(["A", "man", "isn't", "here."], ["It", "rains"], "not_entailment")]

    @pytest.mark.parametrize(
        ("content", "line", "rest"),
        [
            (lines(PAIR, {**PAIR, "gold_label": 1}), 2, "but is 1"),
            (lines({**PAIR, "sentence2": ""}), 1, "the hypothesis must have at least one word, but is ''"),
            (lines({**PAIR, "sentence1": " \u3000"}), 1, "the premise must have at least one word, but is"),
            (table({**PAIR, "sentence2": " "}), 2, "the hypothesis must have at least one word, but is ' '"),
            (lines(PAIR, {"sentence1": "a"}), 2, "must have a text under 'sentence2', but has only .*'sentence1'"),
            (lines({**PAIR, "sentence1": None}), 1, "must have a text under 'sentence1', but has None"),
            (lines({**PAIR, "sentence2": ["a"]}), 1, r"must have a text under 'sentence2', but has \['a'\]"),
            (lines(PAIR) + "{'sentence1': 1}\n", 2, r"must be a JSON object, but is .* \(Expecting"),
            (lines(PAIR) + '{"sentence1": "a"', 2, r"must be a JSON object, but is .* \("),
            (lines(PAIR) + "[1]\n", 2, r"must be a JSON object, or the first line name .* but is '\[1\]'"),
            ("A man sleeps.\tA man is awake.\tneutral\n", 1, "or the first line name the columns of a table"),
            ("\n\nsentence1,sentence2\n", 3, "or the first line name the columns of a table"),
            (table(PAIR) + "neutral\ta\n", 3, "must have 3 columns, as the first has, but this one has 2"),
            (table(PAIR) + "neutral\ta\tb\t\n", 3, "must have 3 columns, as the first has, but this one has 4"),
            (b'{"sentence1": "caf\xe9"}\n', 1, "must be UTF-8, but byte 19 of this line is 0xe9"),
            (lines(PAIR).replace("\n", "\r") * 2, 1, "carriage return alone"),
        ],
    )
    def test_a_broken_line_is_named(self, path, content, line, rest):
        """Oracle: the message says file, line, rule and value."""
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line {line}: .*{rest}"):
            read(path, content)

    @pytest.mark.parametrize(
        ("content", "line", "rest"),
        [
            (lines(PAIR, {**PAIR, "gold_label": "maybe"}), 2, "entailment, neutral, contradiction, but is 'maybe'"),
            (lines(PAIR, {**PAIR, "gold_label": ""}), 2, "but is ''"),
            (table(PAIR, {**PAIR, "gold_label": "maybe"}), 3, "but is 'maybe'"),
        ],
    )
    def test_another_label_is_an_error_of_a_training_but_not_of_a_prediction(self, path, content, line, rest):
        """Oracle: the message says file, line, rule and value; the words are there without the label."""
        path.write_text(content)
        instances = list(SnliReader().read(str(path)))
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line {line}: .*{rest}"):
            Vocabulary.from_instances(instances)
        words = without_gold(instances[1])
        assert set(words.fields) == {"premise", "hypothesis", "metadata"}
        words.index_fields(Vocabulary.from_instances(instances[:1]))

    @pytest.mark.parametrize(
        ("content", "rest"),
        [
            (lines(PAIR, {**PAIR, "gold_label": None}), "either all pairs .* this one has none .* have one"),
            (lines(PAIR) + lines(PAIR).replace("gold_label", "label"), "either all pairs .* this one has none"),
            (lines({**PAIR, "gold_label": None}, PAIR), "either all pairs .* this one has one .* have none"),
            (lines(PAIR) + lines(PAIR).replace("{", '{"sentence1": "Another.", '), "the key 'sentence1' twice"),
            (lines(PAIR, {**PAIR, "sentence2": "\ud800"}), r"'sentence2': a text must be Unicode, .* \\ud800 alone"),
            (lines(PAIR) + '{"a": ' * 100_000, "nested too deeply"),
            (lines(PAIR) + '{"a": ' + "1" * 5000 + "}", "must be a JSON object"),
        ],
        ids=["label null", "label missing", "first label null", "double key", "half a character", "deep", "digits"],
    )
    def test_a_pair_unlike_those_before_is_named(self, path, content, rest):
        """Oracle: the message says file, line and rule; each was taken silently, or failed without its line."""
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line 2: .*{rest}"):
            read(path, content)

    def test_a_double_column_is_an_error(self, path):
        """Oracle: the message; the last one was read."""
        columns = (*COLUMNS, "sentence1")
        with pytest.raises(ValueError, match=f"{path}, line 1: a table must have one column 'sentence1'"):
            read(path, table(PAIR, columns=columns))

    @pytest.mark.parametrize("content", ["", "\n \n", table()])
    def test_a_file_without_pairs_is_an_error(self, path, content):
        """Oracle: the message, which must name the file."""
        with pytest.raises(ValueError, match=f"{re.escape(str(path))} must hold at least one pair"):
            read(path, content)

    def test_a_file_of_skipped_pairs_is_an_error(self, path):
        """Oracle: the message, which must say why."""
        with pytest.raises(ValueError, match="holds only 2 with the label '-'"):
            read(path, lines({**PAIR, "gold_label": "-"}) * 2)

    def test_a_label_that_was_not_in_the_training_is_named(self, path):
        """Oracle: the message: file, line, and the labels of the training."""
        path.write_text(lines(PAIR, {**PAIR, "gold_label": "entailment"}))
        known, unknown = SnliReader().read(str(path))
        with pytest.raises(ValueError, match=rf"{path}, line 2: .*the training \(neutral\), but is 'entailment'"):
            unknown["label"].index(Vocabulary.from_instances([known]))
