import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.metrics import SrlF1
from tests import srl_eval
from tests.metrics.span_f1_test import scores_of

LABELS = ("ARG0", "ARG1", "ARGM-TMP", "C-ARG0", "C-ARG1", "C-V", "R-ARG1", "C-R-ARG1", "V")
HEADS = ("ARG0", "ARG1", "ARGM-TMP", "R-ARG1")


def score(gold: str, predicted: str) -> dict[str, float]:
    metric = SrlF1()
    metric([predicted.split()], [gold.split()])
    return metric.get_metric()


def scores_in(metrics: dict[str, float]) -> tuple[float, float, float]:
    return metrics["precision"], metrics["recall"], metrics["f1"]


@st.composite
def propositions(draw: st.DrawFn, length: int) -> list[str]:
    """Well-formed BIO tags."""
    tags: list[str] = []
    while len(tags) < length:
        if draw(st.booleans()):
            tags.append("O")
        else:
            label = draw(st.sampled_from(LABELS))
            n_inside = draw(st.integers(0, 2))
            tags += [f"B-{label}"] + [f"I-{label}"] * n_inside
    return tags[:length]


@st.composite
def pairs_of_propositions(draw: st.DrawFn) -> list[tuple[list[str], list[str]]]:
    """Gold and predicted tags, which often differ in only a few."""
    pairs = []
    for length in draw(st.lists(st.integers(0, 9), max_size=4)):
        gold = draw(propositions(length))
        predicted = draw(propositions(length))
        cut = draw(st.integers(0, length))
        while cut < length and predicted[cut].startswith("I"):
            cut += 1
        if cut == length or not gold[cut].startswith("I"):
            predicted = gold[:cut] + predicted[cut:]
        pairs.append((gold, predicted))
    return pairs


class TestSrlF1:
    @pytest.mark.parametrize(
        ("gold", "predicted", "counts", "perfect"),
        [
            pytest.param(
                "B-ARG0 B-V O", "B-ARG0 O O", (1, 1, 1), 1, id="the predicate does not count"
            ),
            pytest.param(
                "B-ARG0 B-V B-C-V", "B-ARG0 B-V O", (1, 1, 1), 1, id="nor do its continuations"
            ),
            pytest.param("B-ARG0 B-V", "B-ARG1 B-V", (0, 1, 1), 0, id="wrong label"),
            pytest.param(
                "B-ARG1 B-V B-C-ARG1", "B-ARG1 B-V B-C-ARG1", (1, 1, 1), 1, id="both parts right"
            ),
            pytest.param(
                "B-ARG1 B-V B-C-ARG1", "B-ARG1 B-V O", (0, 1, 1), 0, id="one part missing"
            ),
            pytest.param(
                "B-V B-C-ARG1",
                "B-V B-ARG1",
                (1, 1, 1),
                1,
                id="a part without a head is the argument",
            ),
            pytest.param(
                "B-C-ARG1 B-V B-ARG1",
                "B-ARG1 B-V B-ARG1",
                (2, 2, 2),
                1,
                id="a head after it is another",
            ),
            pytest.param(
                "B-C-ARG1 B-V B-C-ARG1",
                "B-ARG1 B-V B-C-ARG1",
                (1, 1, 1),
                1,
                id="the second is a continuation",
            ),
            pytest.param(
                "B-ARG0 B-V B-C-ARG1",
                "B-ARG0 B-V B-ARG1",
                (2, 2, 2),
                1,
                id="another label has no head",
            ),
            pytest.param(
                "B-ARG1 O B-ARG1 B-V B-C-ARG1",
                "B-ARG1 O B-ARG1 B-V O",
                (1, 2, 2),
                0,
                id="it is the last head's",
            ),
            pytest.param(
                "B-ARG1 B-R-ARG1 B-V", "B-ARG1 O B-V", (1, 1, 2), 0, id="references count"
            ),
            pytest.param(
                "B-ARG1 B-R-ARG1 B-V B-C-ARG1",
                "B-ARG1 B-R-ARG1 B-V O",
                (1, 2, 2),
                0,
                id="and are not heads",
            ),
            pytest.param("O O", "O O", (0, 0, 0), 1, id="nothing there"),
        ],
    )
    def test_it_counts_by_the_rules(self, gold, predicted, counts, perfect):
        n_correct, n_predicted, n_gold = counts
        metrics = score(gold, predicted)
        assert scores_in(metrics) == pytest.approx(scores_of(n_correct, n_predicted, n_gold))
        assert metrics["perfect"] == perfect

    @given(pairs_of_propositions())
    def test_it_counts_like_the_script_of_the_shared_task(self, pairs):
        """Oracle: `tests/srl_eval.py`, on columns of brackets."""
        metric = SrlF1()
        metric([predicted for _, predicted in pairs], [gold for gold, _ in pairs])
        columns = []
        for gold, predicted in pairs:
            columns.append((srl_eval.brackets(gold), srl_eval.brackets(predicted)))
        correct, excess, missed, n_perfect = srl_eval.evaluate(columns)
        n_correct = sum(correct[label] for label in HEADS)
        n_predicted = n_correct + sum(excess[label] for label in HEADS)
        n_gold = n_correct + sum(missed[label] for label in HEADS)
        metrics = metric.get_metric()
        assert scores_in(metrics) == pytest.approx(scores_of(n_correct, n_predicted, n_gold))
        assert metrics["perfect"] == pytest.approx(n_perfect / len(pairs) if pairs else 0.0)
