import random
import re
import string
from typing import Any

import pytest
from allennlp.training.metrics import Metric
from allennlp_models.rc.metrics import SquadEmAndF1
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.training import SquadEmF1
from tests.two_workers import reports_of_two_workers


def scores(predicted: list[str], gold: list[list[str]]) -> tuple[float, float]:
    metric = SquadEmF1()
    metric(predicted, gold)
    return tuple(metric.get_metric().values())


def words_of(answer: str) -> list[str]:
    """The words that SQuAD 1.1 compares, computed differently from AllenNLP: punctuation is removed before articles."""
    kept = answer.lower().translate({ord(character): None for character in string.punctuation})
    return [word for word in re.split(r"\s+", re.sub(r"\b(?:the|an|a)\b", " ", kept)) if word]


def expected_scores(answer: str, gold: list[str]) -> tuple[float, float]:
    """Precision and recall of the words, for each gold answer."""
    em = f1 = 0.0
    for right in gold:
        words, right_words = words_of(answer), words_of(right)
        em = max(em, float(words == right_words))
        common = sum(min(words.count(word), right_words.count(word)) for word in set(words))
        if common:
            precision, recall = common / len(words), common / len(right_words)
            f1 = max(f1, 2 * precision * recall / (precision + recall))
    return em, f1


def score_part(rank: int) -> dict[str, Any]:
    """A worker of a distributed run: one question in the first, two in the second."""
    metric = SquadEmF1()
    parts = [(["Paris"], [["Paris"]]), (["Rome", "the old town"], [["Paris"], ["old town hall"]])]
    metric(*parts[rank])
    metrics: dict[str, Any] = metric.get_metric()
    return metrics


class TestSquadEmF1:
    @pytest.mark.parametrize(
        ("answer", "gold", "em", "f1"),
        [
            ("Paris", ["Paris"], 1, 1),
            ("paris.", ["  PARIS "], 1, 1),
            ("the Eiffel Tower", ["Eiffel tower"], 1, 1),
            ("an apple, a pear", ["apple pear"], 1, 1),
            ("theatre", ["atre"], 0, 0),
            ("U.S.", ["US"], 1, 1),
            ("1854-1855", ["1854"], 0, 0),
            ("30–60%", ["30–60"], 1, 1),
            ("old town", ["old town hall"], 0, 0.8),
            ("town town", ["town"], 0, 2 / 3),
            ("old town", ["Rome", "town", "old town hall"], 0, 0.8),
            ("old town", ["Rome", "the old town"], 1, 1),
            ("", ["Paris"], 0, 0),
            ("the", ["a"], 1, 0),
            ("", [""], 1, 0),
            ("tow\u00a0wn", ["tow wn"], 1, 1),
        ],
    )
    def test_it_is_the_official_score(self, answer, gold, em, f1):
        """Oracle: the official script (`evaluate-v1.1.py`) by hand; where nothing is left, its F1 is 0."""
        assert scores([answer], [gold]) == pytest.approx((em, f1))

    @settings(max_examples=300)
    @given(st.integers(0, 100_000))
    def test_random_answers(self, seed):
        """Oracle: precision and recall word by word; and AllenNLP's `squad`, where words are left."""
        generator = random.Random(seed)
        pieces = ["the", "a", "An", "town", "Town", "old", "x", ",", ".", "-", "'s", "\n", "\u00a0", "é", "", "that"]
        texts = ["".join(generator.choices([*pieces, " "], k=generator.randrange(7))) for _ in range(6)]
        texts += [" ".join(generator.choices(pieces, k=generator.randrange(5))) for _ in range(6)]
        gold = [generator.choices(texts, k=generator.randint(1, 3)) for _ in texts]
        pairs = [expected_scores(*pair) for pair in zip(texts, gold, strict=True)]
        assert scores(texts, gold) == pytest.approx([sum(column) / len(texts) for column in zip(*pairs, strict=True)])
        theirs = SquadEmAndF1()
        left = [(text, right) for text, right in zip(texts, gold, strict=True) if all(map(words_of, [text, *right]))]
        if left:
            theirs([text for text, _ in left], [right for _, right in left])
            assert scores(*map(list, zip(*left, strict=True))) == pytest.approx(theirs.get_metric())

    def test_it_is_the_mean_of_all_batches_until_it_is_reset(self):
        """Oracle: by hand."""
        metric = SquadEmF1()
        assert metric.get_metric() == {"em": 0.0, "f1": 0.0}
        metric(["a town"], [["town"]])
        metric(["old town", "x", "y"], [["old town hall"], ["z"], ["z"]])
        assert metric.get_metric(reset=True) == pytest.approx({"em": 0.25, "f1": 0.45})
        assert metric.get_metric() == {"em": 0.0, "f1": 0.0}

    @pytest.mark.slow
    def test_the_workers_of_a_distributed_run_report_the_mean_of_all(self, tmp_path):
        """Oracle: the mean of three questions, of which the workers have one and two."""
        for report in reports_of_two_workers(tmp_path, score_part):
            assert report == pytest.approx({"em": 1 / 3, "f1": 1.8 / 3})

    def test_wrong_input_is_an_error(self):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match="zip"):
            SquadEmF1()(["a"], [])
        with pytest.raises(ValueError, match="the one answered with 'Rome' has none"):
            SquadEmF1()(["Rome"], [[]])

    def test_it_is_registered(self):
        """Oracle: AllenNLP's registry."""
        assert Metric.by_name("elmo_squad_em_f1") is SquadEmF1
