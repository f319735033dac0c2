from pathlib import Path

import pytest

from elmo_tasks.analysis import AnsweredSet, FirstSenses, WordSenses, scores_of, table_of
from elmo_tasks.analysis.wsd_corpus import WsdCorpus
from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM

NAMES = ["layer 0", "layer 1", "layer 2", "mean", "first sense"]


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    folder = TINY_BILM
    return Elmo.from_pretrained(folder, device="cpu")


@pytest.fixture
def data(fixtures_root: Path) -> Path:
    return fixtures_root / "wsd"


def learned(elmo: Elmo, data: Path, **kwargs: object) -> WordSenses:
    (training,) = WsdCorpus.find(data / "train")
    return WordSenses(elmo, training, progress=False, **kwargs)


class TestWordSenses:
    def test_words_of_the_training_get_their_senses(self, elmo, data):
        """Oracle: the keys: the mean of one word is its vector, and no other word is as near to it."""
        training = WsdCorpus.find(data / "train")[0]
        senses = learned(elmo, data, max_sentences=3)
        answered = senses.answer(training)
        learned_ids = ["d000.s000.t000", "d000.s002.t000"]
        for name in NAMES[1:4]:
            assert [answered.answers[name][key][0] for key in learned_ids] == [
                training.keys[key][0] for key in learned_ids
            ]
        assert senses.n_instances == 3

    def test_lemmas_that_were_not_seen_get_the_first_sense(self, elmo, data):
        """Oracle: by hand: cathedral is in WordNet's index, zither is not; neither is in the training data."""
        senses = learned(elmo, data, first_senses=FirstSenses.from_wordnet(data / "wordnet"))
        answered = senses.answer(WsdCorpus.find(data / "test")[0])
        assert list(answered.answers) == NAMES
        assert (answered.n_unseen, answered.n_unanswered) == (2, 1)
        for answers in answered.answers.values():
            assert answers["d000.s004.t000"] == ["cathedral%1:06:00::"]
            assert "d000.s005.t000" not in answers
            assert len(answers) == 5
        assert answered.answers["first sense"]["d000.s003.t000"] == ["bank%1:17:01::"]
        assert senses.n_unknown_senses == 0

    def test_without_wordnet_they_stay_without_an_answer(self, elmo, data):
        """Oracle: by hand; the first sense for comparison is then the most frequent of the training data."""
        senses = learned(elmo, data)
        answered = senses.answer(WsdCorpus.find(data / "test")[0])
        assert (answered.n_unseen, answered.n_unanswered) == (2, 2)
        assert answered.answers["first sense"]["d000.s003.t000"] == ["bank%1:14:00::"]
        assert all(len(answers) == 4 for answers in answered.answers.values())
        assert "no WordNet" in senses.first_senses.source

    def test_senses_that_wordnet_does_not_have_are_counted(self, elmo, data):
        """Oracle: 12 senses in the keys, of which this WordNet has one."""
        first_senses = FirstSenses({}, "by hand", {"bank%1:14:00::", "other%1:00:00::"})
        assert learned(elmo, data, first_senses=first_senses).n_unknown_senses == 11


def answered_set(name: str, right: int, wrong: int, unanswered: int) -> AnsweredSet:
    gold = {f"d0.t{n}": ("x%1",) for n in range(right + wrong + unanswered)}
    answers = {f"d0.t{n}": ["x%1" if n < right else "y%1"] for n in range(right + wrong)}
    return AnsweredSet(name, gold, {"layer 0": answers, "first sense": {}}, unanswered + 1, unanswered)


class TestScores:
    def test_sets_are_scored_one_by_one_and_together(self):
        """Oracle: by hand: 4 of 8 in the paper's four, 4 of 10 with the fifth, though all number their words alike."""
        four = [answered_set(name, 1, 1, 0) for name in ("senseval2", "senseval3", "semeval2013", "semeval2015")]
        sets = [*four, answered_set("semeval2007", 0, 2, 0)]
        scores = scores_of(sets)["layer 0"]
        assert list(scores) == [*(answered.name for answered in sets), "the four", "ALL"]
        assert [scores[name].f1 for name in ("senseval2", "semeval2007", "the four", "ALL")] == pytest.approx(
            [0.5, 0.0, 0.5, 0.4]
        )
        assert [scores[name].instances for name in ("senseval2", "the four", "ALL")] == [2, 8, 10]
        assert list(scores_of(sets[1:])["layer 0"]) == [*(answered.name for answered in sets[1:]), "ALL"]

    def test_the_table_has_scores_and_numbers(self):
        """Oracle: by hand: P 1/2 and R 1/3 make 40; the lemmas that were not in training and the unanswered add up."""
        sets = [answered_set("senseval2", 1, 1, 1), answered_set("mini", 2, 0, 0)]
        rows = [line.split() for line in table_of(sets, scores_of(sets)).splitlines()]
        assert rows == [
            ["F1,", "%", "senseval2", "mini", "ALL"],
            ["layer", "0", "40.0", "100.0", "66.7"],
            ["first", "sense", "0.0", "0.0", "0.0"],
            ["instances", "3", "2", "5"],
            ["lemma", "not", "in", "training", "2", "1", "3"],
            ["unanswered", "1", "0", "1"],
        ]
