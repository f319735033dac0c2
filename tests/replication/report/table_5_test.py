"""Tests of Table 5."""

import json

import pytest

from elmo_tasks.replication import word_senses_table

SCORES = {
    "layer 1": {"senseval2": {"f1": 0.5}, "the four": {"f1": 0.661}, "ALL": {"f1": 0.66}},
    "mean": {"senseval2": {"f1": 0.5}, "the four": {"f1": 0.5}, "ALL": {"f1": 0.4}},
    "first sense": {"senseval2": {"f1": 0.5}, "the four": {"f1": 0.65}, "ALL": {"f1": 0.64}},
}
NUMBERS = {
    "format": 1,
    "table": "table 5",
    "bilm": "small",
    "training": "semcor",
    "wordnet": True,
    "max_sentences": None,
    "senses_not_in_wordnet": 0,
    "distance": "cosine",
    "instances_of_training": 2000,
    "senses": 1000,
    "first_senses": "WordNet",
    "scores": SCORES,
    "sets": {"a": {"lemma_not_in_training": 3, "unanswered": 1}, "b": {"lemma_not_in_training": 4, "unanswered": 0}},
}


@pytest.fixture
def write(tmp_path):
    """Writes a file: `write(key=value)`, with those keys changed."""

    def written(**changes):
        path = tmp_path / "scores.json"
        path.write_text(json.dumps({**NUMBERS, **changes}))
        return path

    return written


class TestWordSensesTable:
    def test_our_rows_are_next_to_the_papers(self, write):
        """Oracle: by hand."""
        table = word_senses_table(write())
        assert table.columns == ["model", "the four", "ALL", "paper, the four"]
        assert table.rows[:3] == [
            ["biLM, first layer", "66.1", "66.0", "67.4"],
            ["biLM, mean of the layers", "50.0", "40.0", "–"],
            ["WordNet 1st sense", "65.0", "64.0", "65.9"],
        ]
        assert ["biLM, second layer", "–", "–", "69.0"] in table.rows
        caption = " ".join(table.caption)
        assert "1,000 senses, of 2,000 instances of semcor, nearest by cosine; tested on a, b." in caption
        assert "Of ALL, 7 instances have such a lemma, and 1 stay unanswered." in caption
        assert "does not compare" not in caption

    def test_without_wordnet_its_first_sense_is_not_claimed(self, write):
        """Oracle: the paper's number alone in its row, and the caption says what is missing."""
        table = word_senses_table(write(wordnet=False))
        assert ["WordNet 1st sense", "–", "–", "65.9"] in table.rows
        assert ["most frequent sense of the training data", "65.0", "64.0", "–"] in table.rows
        assert "does not compare" in " ".join(table.caption)

    def test_what_makes_a_score_lower_is_said(self, write):
        """Oracle: the words, which are not there otherwise."""
        said = {"Learned from the first 100 sentences only.", "5 of the senses are not in this WordNet", "A note."}
        caption = " ".join(
            word_senses_table(write(max_sentences=100, senses_not_in_wordnet=5, notes=["A note."])).caption
        )
        assert all(words in caption for words in said)
        caption = " ".join(word_senses_table(write()).caption)
        assert not any(words in caption for words in said)

    def test_other_test_sets_have_no_column_of_the_four(self, write):
        """Oracle: by hand."""
        scores = {name: {"ALL": row["ALL"]} for name, row in SCORES.items()}
        assert word_senses_table(write(scores=scores)).columns == ["model", "ALL", "paper, the four"]

    @pytest.mark.parametrize(
        "changes", [{"format": 2}, {"table": "table 1"}, {"scores": None}, {"scores": {}}, {"sets": []}]
    )
    def test_another_file_is_refused(self, write, changes):
        """Oracle: the message names the file."""
        with pytest.raises(ValueError, match=r"scores\.json must be a file of .*elmo-wsd"):
            word_senses_table(write(**changes))
