from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.metrics import SpanF1
from tests import conlleval

LABELS = ("LOC", "ORG", "PER")


def scores_of(n_correct: int, n_predicted: int, n_gold: int) -> tuple[float, float, float]:
    """The three formulas of `conlleval.pl`."""
    precision = n_correct / n_predicted if n_predicted else 0.0
    recall = n_correct / n_gold if n_gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return precision, recall, f1


def scores_in(metrics: dict[str, float]) -> tuple[float, float, float]:
    return metrics["precision-overall"], metrics["recall-overall"], metrics["f1-measure-overall"]


@st.composite
def gold_and_predicted(draw: st.DrawFn, prefixes: str = "BI") -> list[tuple[list[str], list[str]]]:
    """Sentences with any tags."""
    tag = st.just("O") | st.builds(
        "{}-{}".format, st.sampled_from(prefixes), st.sampled_from(LABELS)
    )
    lengths = draw(st.lists(st.integers(0, 6), max_size=4))
    sentences = []
    for n_words in lengths:
        gold = draw(st.lists(tag, min_size=n_words, max_size=n_words))
        predicted = draw(st.lists(tag, min_size=n_words, max_size=n_words))
        sentences.append((gold, predicted))
    return sentences


class TestSpanF1:
    @pytest.mark.parametrize(
        ("gold", "predicted", "counts"),
        [
            pytest.param("B-PER I-PER O B-ORG", "B-PER I-PER O B-ORG", (2, 2, 2), id="exact match"),
            pytest.param("B-PER I-PER O", "B-PER O O", (0, 1, 1), id="wrong boundary"),
            pytest.param("O B-PER I-PER", "O B-ORG I-ORG", (0, 1, 1), id="wrong type"),
            pytest.param(
                "B-PER B-PER O", "B-PER I-PER O", (0, 1, 2), id="adjacent entities run together"
            ),
            pytest.param(
                "B-PER B-PER B-ORG", "B-PER B-PER B-ORG", (3, 3, 3), id="adjacent entities"
            ),
            pytest.param("B-PER O B-ORG", "O O O", (0, 0, 2), id="nothing predicted"),
            pytest.param("O O O", "B-PER O I-ORG", (0, 2, 0), id="nothing there"),
            pytest.param("O O", "O O", (0, 0, 0), id="nothing at all"),
            pytest.param(
                "B-PER I-PER B-ORG", "I-PER I-PER I-ORG", (2, 2, 2), id="malformed: begins inside"
            ),
            pytest.param(
                "B-PER I-PER I-PER",
                "B-PER I-ORG I-PER",
                (0, 3, 1),
                id="malformed: the type changes",
            ),
        ],
    )
    def test_the_counts_match_conlleval(self, gold, predicted, counts):
        """
        The numbers of correct, found and gold phrases that `conlleval` prints for these lines.
        """
        gold_tags = gold.split()
        predicted_tags = predicted.split()
        by_type = conlleval.counts([(gold_tags, predicted_tags)])
        assert tuple(counter.total() for counter in by_type) == counts
        metric = SpanF1()
        metric([predicted_tags], [gold_tags])
        assert scores_in(metric.get_metric()) == pytest.approx(scores_of(*counts))

    @given(st.lists(gold_and_predicted(), max_size=3))
    def test_any_tags_score_as_in_conlleval(self, batches):
        metric = SpanF1()
        for batch in batches:
            metric([predicted for _, predicted in batch], [gold for gold, _ in batch])
        metrics = metric.get_metric(verbose=True)
        correct, predicted, gold = conlleval.counts(chain.from_iterable(batches))
        overall = scores_of(correct.total(), predicted.total(), gold.total())
        assert scores_in(metrics) == pytest.approx(overall)
        for label in {*correct, *predicted, *gold} - {""}:
            scores = [metrics[f"{name}-{label}"] for name in ("precision", "recall", "f1-measure")]
            expected = scores_of(correct[label], predicted[label], gold[label])
            assert tuple(scores) == pytest.approx(expected)

    def test_the_names_are_those_of_allennlp(self):
        from allennlp.data import Vocabulary
        from allennlp.training.metrics import SpanBasedF1Measure

        tags = ["B-PER", "I-PER", "B-LOC", "O"]
        vocabulary = Vocabulary(tokens_to_add={"labels": [*tags, "I-LOC"]})
        allennlp_metric = SpanBasedF1Measure(vocabulary, "labels")
        gold = torch.tensor([[vocabulary.get_token_index(tag, "labels") for tag in tags]])
        allennlp_metric(torch.nn.functional.one_hot(gold, 5).float(), gold)
        metric = SpanF1()
        metric([tags], [tags])
        scores = metric.get_metric(verbose=True)
        assert scores.pop("macro_f1") == 1.0
        assert scores == pytest.approx(allennlp_metric.get_metric())

    def test_macro_f1_is_the_mean_over_labels(self):
        """`PER`: 2 of 3 and 2 of 2; `ORG`: 0 of 1, and found once; `LOC`: not there, found once."""
        metric = SpanF1()
        gold = ["B-PER", "O", "B-PER", "O", "B-PER", "O", "B-ORG"]
        predicted = ["B-PER", "O", "B-PER", "B-LOC", "O", "B-ORG", "O"]
        metric([predicted], [gold])
        assert metric.get_metric()["macro_f1"] == pytest.approx((0.8 + 0.0 + 0.0) / 3)

    def test_the_most_frequent_mistakes(self, caplog):
        metric = SpanF1()
        for _ in range(2):
            metric([["B-ORG", "B-ORG", "B-LOC"]], [["B-PER", "O", "B-LOC"]])
        metric([["O", "O", "B-LOC"]], [["O", "B-PER", "B-LOC"]])
        with caplog.at_level("INFO"):
            metric.get_metric(verbose=True)
        _, *rows = metric.mistakes().splitlines()
        assert [row.split() for row in rows] == [
            ["-", "ORG", "2"],
            ["PER", "ORG", "2"],
            ["PER", "-", "1"],
        ]
        assert metric.mistakes() in caplog.text
