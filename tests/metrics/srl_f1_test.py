import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.metrics import SrlF1
from tests import srl_eval

LABELS = ("ARG0", "ARG1", "ARGM-TMP", "C-ARG0", "C-ARG1", "C-V", "R-ARG1", "C-R-ARG1", "V")
HEADS = ("ARG0", "ARG1", "ARGM-TMP", "R-ARG1")


def score(gold: str, predicted: str) -> dict[str, float]:
    metric = SrlF1()
    metric([predicted.split()], [gold.split()])
    return metric.get_metric()


@st.composite
def propositions(draw: st.DrawFn, length: int) -> list[str]:
    """Well-formed BIO tags."""
    tags: list[str] = []
    while len(tags) < length:
        if draw(st.booleans()):
            tags.append("O")
        else:
            label, size = draw(st.sampled_from(LABELS)), draw(st.integers(1, 3))
            tags += [f"B-{label}", *[f"I-{label}"] * (size - 1)]
    return [
        "O" if tag.startswith("I") and not index else tag for index, tag in enumerate(tags[:length])
    ]


@st.composite
def pairs_of_propositions(draw: st.DrawFn) -> list[tuple[list[str], list[str]]]:
    """Gold and predicted tags, which often differ in only a few."""
    pairs = []
    for length in draw(st.lists(st.integers(0, 9), max_size=4)):
        gold, other = draw(propositions(length)), draw(propositions(length))
        cut = draw(st.integers(0, length))
        while cut < length and other[cut].startswith("I"):
            cut += 1
        pairs.append(
            (gold, gold[:cut] + other[cut:] if cut == length or gold[cut][0] != "I" else other)
        )
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
        right, found, wanted = counts
        precision, recall = right / found if found else 0.0, right / wanted if wanted else 0.0
        metrics = score(gold, predicted)
        assert (metrics["precision"], metrics["recall"]) == (precision, recall)
        f1 = 2 * precision * recall / (precision + recall) if right else 0.0
        assert (metrics["f1"], metrics["perfect"]) == (pytest.approx(f1), perfect)

    @given(pairs_of_propositions())
    def test_it_counts_like_the_script_of_the_shared_task(self, pairs):
        """Oracle: `tests/srl_eval.py`, on columns of brackets."""
        metric = SrlF1()
        metric([predicted for _, predicted in pairs], [gold for gold, _ in pairs])
        columns = [
            (srl_eval.brackets(gold), srl_eval.brackets(predicted)) for gold, predicted in pairs
        ]
        correct, excess, missed, n_perfect = srl_eval.evaluate(columns)
        metrics = metric.get_metric()
        ok, over, under = (
            sum(counts[label] for label in HEADS) for counts in (correct, excess, missed)
        )
        precision, recall = (
            ok / (ok + over) if ok + over else 0.0,
            ok / (ok + under) if ok + under else 0.0,
        )
        f1 = 2 * precision * recall / (precision + recall) if ok else 0.0
        assert (metrics["precision"], metrics["recall"], metrics["f1"]) == pytest.approx(
            (precision, recall, f1)
        )
        assert metrics["perfect"] == pytest.approx(n_perfect / len(pairs) if pairs else 0.0)
