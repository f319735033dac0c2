from pathlib import Path

import numpy as np
import pytest

from elmo_tasks.paper.word_senses import (
    AnsweredSet,
    SenseVectors,
    WordSenses,
    first_senses_of_wordnet,
    score_of,
    scores_of,
)
from elmo_tasks.paper.wsd_corpus import WsdCorpus, WsdInstance

SENSES = ["play%1:10:01::", "play%2:33:00::", "play%2:36:01::", "play%2:40:00::"]


def verb(*numbers: int) -> WsdInstance:
    return WsdInstance("i", "play", "VERB", 0, 1, tuple(SENSES[number] for number in numbers))


def vectors_of(additions: list[tuple[WsdInstance, np.ndarray]]) -> SenseVectors:
    senses = SenseVectors()
    for instance, vector in additions:
        senses.add(instance, vector)
    return senses


class TestSenseVectors:
    def test_the_nearest_mean_wins_in_each_layer_and_in_their_mean(self):
        generator = np.random.default_rng(0)
        additions = []
        for numbers in [(1,), (2,), (3,), (1, 2), (1,), (3,), (2,)] * 3:
            vector = generator.normal(size=(2, 3)).astype(np.float32) + numbers[0]
            additions.append((verb(*numbers), vector))
        senses = vectors_of(additions)
        assert len(senses) == 3
        # Shape of each: (3, dim), with the mean of the layers last
        means = {}
        for sense in SENSES[1:]:
            vectors = [vector for instance, vector in additions if sense in instance.senses]
            mean = np.mean(vectors, 0, dtype=float)
            means[sense] = np.vstack([mean, mean.mean(0)])

        def cosine(one: np.ndarray, other: np.ndarray) -> float:
            return float(one @ other) / float(np.linalg.norm(one) * np.linalg.norm(other))

        for _ in range(20):
            target = generator.normal(size=(2, 3)).astype(np.float32) + 2
            expected = []
            for layer, vector in enumerate(np.vstack([target, target.mean(0)])):
                cosines = {sense: cosine(mean[layer], vector) for sense, mean in means.items()}
                expected.append(max(cosines, key=lambda sense: cosines[sense]))
            assert senses.nearest(verb(1), target) == expected

    def test_only_senses_of_the_lemma_and_part_of_speech_are_looked_at(self):
        ones = np.ones((2, 3), np.float32)
        noun = WsdInstance("i", "play", "NOUN", 0, 1, (SENSES[0],))
        senses = vectors_of([(noun, ones), (verb(1), -ones)])
        assert senses.nearest(verb(1), ones) == [SENSES[1]] * 3
        assert senses.nearest(noun, ones) == [SENSES[0]] * 3
        assert senses.nearest(WsdInstance("i", "plays", "NOUN", 0, 1, (SENSES[0],)), ones) is None

    @pytest.mark.parametrize("seed", range(5))
    def test_rounding_does_not_break_ties(self, seed):
        """
        The first of several equally near senses wins. The context-insensitive vectors of a word are
        the same in all senses, but their sums are not, and a vector is rounded differently in a
        different batch.
        """
        generator = np.random.default_rng(seed)
        vector = 10 * generator.normal(size=(2, 3)).astype(np.float32)

        def rounded() -> np.ndarray:
            return vector * (1 + 1e-7 * generator.normal(size=(2, 3))).astype(np.float32)

        additions = [(verb(number), rounded()) for number in [3] * 7 + [1] * 3 + [2] * 300]
        assert vectors_of(additions).nearest(verb(1), rounded()) == [SENSES[3]] * 3

    def test_the_most_frequent_senses_are_counted(self):
        zeros = np.zeros((2, 3), np.float32)
        additions = [(verb(*numbers), zeros) for numbers in [(1,), (2,), (1, 2), (2,)]]
        assert vectors_of(additions).most_frequent == {("play", "VERB"): SENSES[2]}
        assert vectors_of(additions[:2]).most_frequent == {("play", "VERB"): SENSES[1]}


class TestWordSenses:
    @pytest.fixture(scope="class")
    def training(self, fixtures_root: Path) -> WsdCorpus:
        (training,) = WsdCorpus.find(fixtures_root / "wsd" / "train")
        return training

    def test_the_vectors_are_means_over_the_words(self, elmo, training):
        """Oracle: the layers of each sentence on its own."""
        senses = WordSenses(elmo, training)
        sums: dict[str, list[np.ndarray]] = {}
        for sentence in training:
            (layers,) = elmo.embed([sentence.words], layers="all")
            for instance in sentence.instances:
                mean = layers[:, instance.start : instance.end].mean(1)
                for sense in instance.senses:
                    sums.setdefault(sense, []).append(mean)
        assert senses.n_instances == sum(len(sentence.instances) for sentence in training)
        assert len(senses.senses) == len(sums)
        probe = WsdInstance("i", "play", "VERB", 0, 1, ())
        candidates = [sense for sense in sums if sense.startswith("play%2")]
        for sense in candidates:
            target = np.mean(sums[sense], 0)
            assert senses.senses.nearest(probe, target) == [sense] * 4

    def test_training_words_get_their_senses(self, elmo, training):
        answered = WordSenses(elmo, training).answer(training)
        assert set(answered.answers) == {"layer 0", "layer 1", "layer 2", "mean", "first sense"}
        assert answered.n_unseen == 0
        score = scores_of([answered])
        # Even a tiny random biLM separates most of these few words; the first sense does not.
        assert score["layer 1"]["ALL"]["f1"] > score["first sense"]["ALL"]["f1"]

    def test_a_corpus_without_instances_is_an_error(self, elmo, tmp_path):
        (tmp_path / "a.data.xml").write_text("<corpus><text>No sentence .</text></corpus>")
        (tmp_path / "a.gold.key.txt").touch()
        with pytest.raises(ValueError, match=r"a\.data\.xml"):
            WordSenses(elmo, WsdCorpus(tmp_path / "a.data.xml"))

    def test_an_unseen_lemma_has_the_first_sense(self, elmo, training, fixtures_root):
        first_senses = first_senses_of_wordnet(fixtures_root / "wsd" / "wordnet")
        word_senses = WordSenses(elmo, training)
        with_wordnet = WordSenses(elmo, training, first_senses)
        for corpus in WsdCorpus.find(fixtures_root / "wsd" / "test"):
            answered = word_senses.answer(corpus)
            answered_with_wordnet = with_wordnet.answer(corpus)
            assert answered_with_wordnet.n_unseen == answered.n_unseen
            assert answered.n_unanswered == answered.n_unseen
            for sentence in corpus:
                for instance in sentence.instances:
                    if instance.id not in answered.answers["mean"]:
                        expected = first_senses.get((instance.lemma, instance.pos))
                        answer = answered_with_wordnet.answers["mean"].get(instance.id)
                        assert answer == expected


class TestScores:
    def test_they_match_the_framework(self):
        """
        Oracle: three of four answers to five instances are right; any gold sense counts as right.
        """
        gold = {"1": ("a",), "2": ("a", "b"), "3": ("c",), "4": ("d",), "5": ("e",)}
        answers = {"layer 1": {"1": "a", "2": "b", "3": "x", "4": "d"}, "layer 2": {}}
        score = score_of([AnsweredSet("test", gold, answers)], "layer 1")
        assert score.pop("f1") == pytest.approx(2 * 0.75 * 0.6 / 1.35)
        assert score == {"precision": 0.75, "recall": 0.6, "coverage": 0.8, "instances": 5}
        assert score_of([AnsweredSet("test", gold, answers)], "layer 2")["f1"] == 0.0

    def test_sets_are_joined(self):
        names = ["senseval2", "senseval3", "semeval2013", "semeval2015", "semeval2007"]
        sets = []
        for name in names:
            answer = "b" if name == "senseval2" else "a"
            sets.append(AnsweredSet(name, {"1": ("a",)}, {"mean": {"1": answer}}))
        scores = scores_of(sets)["mean"]
        assert scores["the four"]["f1"] == pytest.approx(0.75)
        assert scores["ALL"]["f1"] == pytest.approx(0.8)
        assert scores["senseval2"]["f1"] == 0.0


def test_first_senses_match_the_index(tmp_path):
    (tmp_path / "dict").mkdir()
    (tmp_path / "dict" / "index.sense").write_text(
        "able%3:00:00:: 00001740 1 72\nable%5:00:00:capable:00 00306663 2 8\napt%5:00:01:intelligent:00 02475 1 0\n"
        "play%1:10:01:: 07018526 1 35\nplay%2:33:00:: 01072949 1 24\nplay%2:36:01:: 01725051 3 10\n"
    )
    assert first_senses_of_wordnet(tmp_path) == {
        ("able", "ADJ"): "able%3:00:00::",
        ("apt", "ADJ"): "apt%5:00:01:intelligent:00",
        ("play", "NOUN"): "play%1:10:01::",
        ("play", "VERB"): "play%2:33:00::",
    }
