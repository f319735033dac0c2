from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.metrics import CorefScores


def clusters(text: str) -> list[list[str]]:
    """`[["a"], ["b", "c"]]` for `a bc`."""
    return [list(cluster) for cluster in text.split()]


def scored(*documents: tuple[str, str]) -> dict[str, float]:
    """
    The metrics of documents, each given as a key and a response in the notation of `clusters`.
    """
    metric = CorefScores()
    metric(
        [clusters(response) for _, response in documents], [clusters(key) for key, _ in documents]
    )
    return metric.get_metric()


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def muc_recall(key: list[list[str]], response: list[list[str]]) -> tuple[float, float]:
    """
    Vilain et al. 1995: |S| - |p(S)| of |S| - 1, p(S) being the parts that the response cuts S into.
    """
    numerator = 0
    for cluster in key:
        parts = [set(cluster) & set(other) for other in response]
        alone = [mention for mention in cluster if not any(mention in other for other in response)]
        numerator += len(cluster) - sum(1 for part in parts if part) - len(alone)
    return numerator, sum(len(cluster) - 1 for cluster in key)


def b_cubed_recall(key: list[list[str]], response: list[list[str]]) -> tuple[float, float]:
    """
    Bagga and Baldwin 1998: the mean, over the key's mentions, of the share of the cluster that is
    kept together.
    """
    numerator = 0.0
    for cluster in key:
        for mention in cluster:
            theirs = next((set(other) for other in response if mention in other), set())
            numerator += len(theirs & set(cluster)) / len(cluster)
    return numerator, sum(map(len, key))


def ceafe_similarity(key: list[list[str]], response: list[list[str]]) -> float:
    """Luo 2005: the largest sum of phi 4 over all ways to pair clusters, by enumeration."""
    short, long = sorted((key, response), key=len)

    def phi(one: list[str], other: list[str]) -> float:
        return 2 * len(set(one) & set(other)) / (len(one) + len(other))

    return max(sum(map(phi, short, order)) for order in permutations(long, len(short)))


@st.composite
def key_and_response(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    """Random clusters, including singletons, with mentions that only one side has."""
    sides = []
    for letters in ("abcdefg", "cdefghi"):
        numbers = draw(st.lists(st.integers(0, 4), min_size=7, max_size=7))
        parts = [
            [letter for letter, mine in zip(letters, numbers, strict=True) if mine == n]
            for n in range(1, 5)
        ]
        sides.append([part for part in parts if part])
    return sides[0], sides[1]


class TestCorefScores:
    @pytest.mark.parametrize(
        ("response", "f1"),
        [
            ("a bc def", 1),
            ("a de", 0.72),
            ("a bcx defy z", 0.75918),
            ("a bcx dy z", 0.62857),
            ("a bcxB dy z", 0.59048),
            ("a bcx dy Bz", 0.62857),
        ],
    )
    def test_ceafe_matches_the_tests_of_the_reference_scorer(self, response, f1):
        """Cases 1 to 6 of the reference scorer's tests, with its numbers; the key is `a bc def`."""
        assert scored(("a bc def", response))["ceafe_f1"] == pytest.approx(f1, abs=1e-5)

    def test_an_example_of_the_authors_of_the_reference_scorer(self):
        """Pradhan et al. 2014, computed by hand: MUC .40/.40, B-cubed .42/.50, CEAF-e .65/.43."""
        found = scored(("abc defg", "ab cd fghi"))
        assert found["muc_f1"] == pytest.approx(0.4)
        assert found["b_cubed_f1"] == pytest.approx(f1(4 / 8, 35 / 12 / 7))
        assert found["ceafe_f1"] == pytest.approx(f1(1.3 / 3, 1.3 / 2))
        assert found["coref_recall"] == pytest.approx((0.4 + 35 / 12 / 7 + 1.3 / 2) / 3)
        assert found["coref_precision"] == pytest.approx((0.4 + 4 / 8 + 1.3 / 3) / 3)

    @given(documents=st.lists(key_and_response(), min_size=1, max_size=3))
    def test_all_measures_are_what_their_papers_define(self, documents):
        metric = CorefScores()
        metric([response for _, response in documents], [key for key, _ in documents])
        found = metric.get_metric()
        expected = {}
        for name, recall_of in (("muc", muc_recall), ("b_cubed", b_cubed_recall)):
            recall = ratio(
                *map(
                    sum,
                    zip(*(recall_of(key, response) for key, response in documents), strict=True),
                )
            )
            precision = ratio(
                *map(
                    sum,
                    zip(*(recall_of(response, key) for key, response in documents), strict=True),
                )
            )
            expected[name] = precision, recall
        similarity = sum(ceafe_similarity(key, response) for key, response in documents)
        n_key, n_response = (sum(len(document[side]) for document in documents) for side in (0, 1))
        expected["ceafe"] = ratio(similarity, n_response), ratio(similarity, n_key)
        for name, scores in expected.items():
            assert found[f"{name}_f1"] == pytest.approx(f1(*scores))
        assert found["coref_f1"] == pytest.approx(
            sum(f1(*scores) for scores in expected.values()) / 3
        )
        assert found["coref_precision"] == pytest.approx(sum(p for p, _ in expected.values()) / 3)
        assert found["coref_recall"] == pytest.approx(sum(r for _, r in expected.values()) / 3)

    def test_mention_recall_counts_kept_mentions(self):
        """2 of 3 and 1 of 2 mentions; a kept span that is not a mention does not count."""
        metric = CorefScores()
        metric([[], []], [clusters("ab c"), clusters("xy")], kept=[["a", "c", "q"], iter(["y"])])
        assert metric.get_metric(reset=True)["mention_recall"] == pytest.approx(3 / 5)
        assert metric.get_metric()["mention_recall"] == 0.0
