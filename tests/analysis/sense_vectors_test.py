from pathlib import Path

import numpy as np
import pytest

from elmo_tasks.analysis import SenseVectors, instance_vectors
from elmo_tasks.analysis.wsd_corpus import WsdInstance, WsdSentence
from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM

SENSES = ["play%1:10:01::", "play%2:33:00::", "play%2:36:01::", "play%2:40:00::"]


def verb(*numbers: int, start: int = 0, end: int = 1) -> WsdInstance:
    return WsdInstance("i", "play", "VERB", start, end, tuple(SENSES[number] for number in numbers))


def vectors_of(additions: list[tuple[WsdInstance, np.ndarray]], **kwargs: str) -> SenseVectors:
    senses = SenseVectors(SENSES, n_layers=2, dim=3, **kwargs)
    for instance, vector in additions:
        senses.add(instance, vector)
    return senses


@pytest.fixture
def elmo(fixtures_root: Path) -> Elmo:
    return Elmo.from_pretrained(TINY_BILM, device="cpu")


class TestSenseVectors:
    @pytest.mark.parametrize("distance", ["cosine", "euclidean"])
    def test_the_nearest_mean_wins_in_each_layer_and_in_their_mean(self, distance):
        """Oracle: means and distances in float64, one at a time, on random vectors; a word may have two senses."""
        generator = np.random.default_rng(0)
        additions = [
            (verb(*numbers), generator.normal(size=(2, 3)).astype(np.float32) + numbers[0])
            for numbers in [(1,), (2,), (3,), (1, 2), (1,), (3,), (2,)] * 3
        ]
        senses = vectors_of(additions, distance=distance)
        assert len(senses) == 3
        means = {}
        for sense in SENSES[1:]:
            members = [vector.astype(float) for instance, vector in additions if sense in instance.senses]
            means[sense] = np.mean(members, 0)

        def far(one: np.ndarray, other: np.ndarray) -> float:
            if distance == "euclidean":
                return float(np.linalg.norm(one - other))
            return 1.0 - float(one @ other) / float(np.linalg.norm(one) * np.linalg.norm(other))

        for _ in range(20):
            target = generator.normal(size=(2, 3)).astype(np.float32) + 2
            expected = [min(means, key=lambda sense: far(means[sense][layer], target[layer])) for layer in range(2)] + [
                min(means, key=lambda sense: far(means[sense].mean(0), target.mean(0)))
            ]
            assert senses.nearest(verb(1), target) == expected

    def test_the_two_distances_part(self):
        """Oracle: by hand: (9, 9, 9) has the direction of (1, 1, 1), and is nearer to (8, 9, 10)."""
        ones = np.ones((2, 3), np.float32)
        additions = [(verb(1), ones), (verb(2), np.array([[8, 9, 10]] * 2, np.float32))]
        assert vectors_of(additions).nearest(verb(3), 9 * ones) == [SENSES[1]] * 3
        assert vectors_of(additions, distance="euclidean").nearest(verb(3), 9 * ones) == [SENSES[2]] * 3

    def test_only_senses_of_the_lemma_and_part_of_speech_are_looked_at(self):
        """Oracle: by hand: the noun's vector is nearer."""
        ones = np.ones((2, 3), np.float32)
        noun = WsdInstance("i", "play", "NOUN", 0, 1, (SENSES[0],))
        senses = vectors_of([(noun, ones), (verb(1), -ones)])
        assert senses.nearest(verb(1), ones) == [SENSES[1]] * 3
        assert senses.nearest(noun, ones) == [SENSES[0]] * 3
        assert senses.nearest(noun._replace(lemma="plays"), ones) is None
        assert senses.nearest(noun._replace(pos="ADJ"), ones) is None

    def test_vectors_of_zeros_have_no_direction(self):
        """Oracle: an answer, and not NaN; the first of two that are as near."""
        zeros = np.zeros((2, 3), np.float32)
        assert vectors_of([(verb(2), zeros), (verb(1), zeros)]).nearest(verb(1), zeros) == [SENSES[2]] * 3

    @pytest.mark.parametrize("distance", ["cosine", "euclidean"])
    @pytest.mark.parametrize("seed", range(5))
    def test_rounding_decides_nothing(self, distance, seed):
        """
        Oracle: the first, by the rule for two that are as near: the context-insensitive vectors of a word are the same
        in all senses. Their sums are not, and in another batch a vector is rounded in another way.
        """
        generator = np.random.default_rng(seed)
        vector = 10 * generator.normal(size=(2, 3)).astype(np.float32)

        def rounded() -> np.ndarray:
            return vector * (1 + 1e-7 * generator.normal(size=(2, 3))).astype(np.float32)

        additions = [(verb(number), rounded()) for number in [3] * 7 + [1] * 3 + [2] * 300]
        assert vectors_of(additions, distance=distance).nearest(verb(1), rounded()) == [SENSES[3]] * 3

    def test_the_most_frequent_senses_are_counted(self):
        """Oracle: by hand: 2 is there three times; of two that are as frequent the first to come."""
        zeros = np.zeros((2, 3), np.float32)
        additions = [(verb(*numbers), zeros) for numbers in [(1,), (2,), (1, 2), (2,)]]
        assert vectors_of(additions).most_frequent == {("play", "VERB"): SENSES[2]}
        assert vectors_of(additions[:2]).most_frequent == {("play", "VERB"): SENSES[1]}

    def test_another_distance_is_an_error(self):
        """Oracle: the message says rule and value."""
        with pytest.raises(ValueError, match="distance must be 'cosine' or 'euclidean', but is 'dot'"):
            SenseVectors(SENSES, n_layers=2, dim=3, distance="dot")


class TestInstanceVectors:
    def test_they_are_the_means_of_their_words(self, elmo):
        """Oracle: the layers of each sentence by itself; sentences without instances are skipped, in order."""
        sentences = [
            WsdSentence(["They", "played"], [verb(1, start=1, end=2)]),
            WsdSentence(["Yes", "."], []),
            WsdSentence(["New", "York", "plays", "on"], [verb(1, start=0, end=2), verb(2, start=2, end=3)]),
            WsdSentence(["Play", "!"], [verb(2)]),
        ]
        found = list(instance_vectors(elmo, iter(sentences), batch_tokens=7))
        assert [instance for instance, _ in found] == [i for sentence in sentences for i in sentence.instances]
        expected = []
        for sentence in sentences:
            (layers,) = elmo.embed([sentence.words], layers="all")
            expected += [layers[:, instance.start : instance.end].mean(1) for instance in sentence.instances]
        np.testing.assert_allclose([vector for _, vector in found], expected, atol=1e-5)
