from itertools import chain, permutations
from statistics import mean

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
    responses = [clusters(response) for _, response in documents]
    keys = [clusters(key) for key, _ in documents]
    metric(responses, keys)
    return metric.get_metric()


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def muc_recall(key: list[list[str]], response: list[list[str]]) -> tuple[float, float]:
    """
    Vilain et al. 1995: |S| - |p(S)| of |S| - 1, p(S) being the parts that the response cuts S into.
    """
    mentions_of_response = set(chain.from_iterable(response))
    numerator = 0
    for cluster in key:
        shared = [set(cluster).intersection(other) for other in response]
        n_parts = sum(bool(mentions) for mentions in shared)
        n_alone = len(set(cluster) - mentions_of_response)
        numerator += len(cluster) - n_parts - n_alone
    return numerator, sum(len(cluster) - 1 for cluster in key)


def b_cubed_recall(key: list[list[str]], response: list[list[str]]) -> tuple[float, float]:
    """
    Bagga and Baldwin 1998: the mean, over the key's mentions, of the share of the cluster that is
    kept together.
    """
    numerator = 0.0
    for cluster in key:
        for mention in cluster:
            for other in response:
                if mention in other:
                    numerator += len(set(other) & set(cluster)) / len(cluster)
    return numerator, sum(len(cluster) for cluster in key)


def ceafe_similarity(key: list[list[str]], response: list[list[str]]) -> float:
    """Luo 2005: the largest sum of phi 4 over all ways to pair clusters, by enumeration."""
    short, long = sorted((key, response), key=len)

    def phi(one: list[str], other: list[str]) -> float:
        return 2 * len(set(one) & set(other)) / (len(one) + len(other))

    sums = [sum(map(phi, short, order)) for order in permutations(long, len(short))]
    return max(sums)


@st.composite
def key_and_response(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    """Random clusters, including singletons, with mentions that only one side has."""
    sides = []
    for letters in ("abcdefg", "cdefghi"):
        # 0 is for letters that are not mentions.
        numbers = draw(st.lists(st.integers(0, 4), min_size=7, max_size=7))
        letters_of_cluster: dict[int, list[str]] = {}
        for number, letter in sorted(zip(numbers, letters, strict=True)):
            letters_of_cluster.setdefault(number, []).append(letter)
        letters_of_cluster.pop(0, None)
        sides.append(list(letters_of_cluster.values()))
    return sides[0], sides[1]


def ratio_of_sums(fractions: list[tuple[float, float]]) -> float:
    numerators = [numerator for numerator, _ in fractions]
    denominators = [denominator for _, denominator in fractions]
    return ratio(sum(numerators), sum(denominators))


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
        metrics = scored(("abc defg", "ab cd fghi"))
        assert metrics["muc_f1"] == pytest.approx(0.4)
        assert metrics["b_cubed_f1"] == pytest.approx(f1(4 / 8, 35 / 12 / 7))
        assert metrics["ceafe_f1"] == pytest.approx(f1(1.3 / 3, 1.3 / 2))
        assert metrics["coref_recall"] == pytest.approx((0.4 + 35 / 12 / 7 + 1.3 / 2) / 3)
        assert metrics["coref_precision"] == pytest.approx((0.4 + 4 / 8 + 1.3 / 3) / 3)

    @given(documents=st.lists(key_and_response(), min_size=1, max_size=3))
    def test_all_measures_are_what_their_papers_define(self, documents):
        metric = CorefScores()
        metric([response for _, response in documents], [key for key, _ in documents])
        metrics = metric.get_metric()
        expected = {}
        for name, recall_of in (("muc", muc_recall), ("b_cubed", b_cubed_recall)):
            recall = ratio_of_sums([recall_of(key, response) for key, response in documents])
            precision = ratio_of_sums([recall_of(response, key) for key, response in documents])
            expected[name] = (precision, recall)
        similarity = sum(ceafe_similarity(key, response) for key, response in documents)
        n_key = sum(len(key) for key, _ in documents)
        n_response = sum(len(response) for _, response in documents)
        expected["ceafe"] = (ratio(similarity, n_response), ratio(similarity, n_key))
        for name, (precision, recall) in expected.items():
            assert metrics[f"{name}_f1"] == pytest.approx(f1(precision, recall))
        f1_scores = [f1(precision, recall) for precision, recall in expected.values()]
        assert metrics["coref_f1"] == pytest.approx(mean(f1_scores))
        precisions = [precision for precision, _ in expected.values()]
        assert metrics["coref_precision"] == pytest.approx(mean(precisions))
        recalls = [recall for _, recall in expected.values()]
        assert metrics["coref_recall"] == pytest.approx(mean(recalls))

    def test_mention_recall_counts_kept_mentions(self):
        """2 of 3 and 1 of 2 mentions; a kept span that is not a mention does not count."""
        metric = CorefScores()
        keys = [clusters("ab c"), clusters("xy")]
        metric([[], []], keys, kept=[["a", "c", "q"], iter(["y"])])
        assert metric.get_metric(reset=True)["mention_recall"] == pytest.approx(3 / 5)
        assert metric.get_metric()["mention_recall"] == 0.0
