import math
from pathlib import Path

import h5py
import pytest
import torch

from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.paper.perplexity import LanguageModel, SentenceLikelihood, summary
from tests.bilm.helpers import SMALL, plain_likelihoods, random_bilm

# Unlike in our word lists, the special words do not come first.
WORDS = ["the", "<UNK>", "cat", "</S>", "sat", "<S>", "."]
SENTENCES = [["the", "cat", "sat", "."], ["yak"], ["the", "zebra", "and", "the", "cat"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A biLM with a softmax of random weights, in the public format."""
    torch.manual_seed(0)
    softmax = LmSoftmax(len(WORDS), SMALL.projection_dim)
    softmax.bias.data.normal_()
    random_bilm().save(
        tmp_path / "options.json", tmp_path / "weights.hdf5", softmax=softmax.state_dict()
    )
    WordList(WORDS).save(tmp_path / "vocab.txt")
    return tmp_path


class TestLanguageModel:
    def test_sentences_have_the_likelihood_of_their_words(self, folder):
        scores = list(LanguageModel(folder).score(SENTENCES))
        assert [score.words for score in scores] == SENTENCES
        assert [score.n_unknown for score in scores] == [0, 1, 2]
        with h5py.File(folder / "weights.hdf5") as file:
            softmax = tuple(torch.from_numpy(file[f"softmax/{name}"][...]) for name in "Wb")
        numbers = {word: number for number, word in enumerate(WORDS)}
        for score, sentence in zip(scores, SENTENCES, strict=True):
            expected = plain_likelihoods(random_bilm(), softmax, numbers, sentence)
            assert (score.forward, score.backward) == pytest.approx(expected, rel=1e-5)

    def test_batches_do_not_matter(self, folder):
        """The words are more than a batch has."""
        model = LanguageModel(folder)
        alone = [next(model.score([sentence])).forward for sentence in SENTENCES]
        assert [score.forward for score in model.score(SENTENCES * 1500)] == pytest.approx(
            alone * 1500, rel=1e-5
        )

    def test_an_error_names_a_file_without_a_matching_softmax(self, folder):
        WordList([*WORDS, "more"]).save(folder / "vocab.txt")
        with pytest.raises(ValueError, match=r"weights\.hdf5"):
            LanguageModel(folder)


class TestSummary:
    def test_perplexity_is_per_prediction(self):
        scores = [
            SentenceLikelihood(["a", "b"], -5 * math.log(2), -1.0, 1),
            SentenceLikelihood(["c"], -5 * math.log(3), -4.0, 0),
        ]
        assert summary(iter(scores)) == {
            "forward_perplexity": pytest.approx(6.0),
            "backward_perplexity": pytest.approx(math.e),
            "perplexity": pytest.approx((6.0 + math.e) / 2),
            "unknown_share": pytest.approx(1 / 3),
            "sentences": 2,
            "words": 3,
        }

    def test_a_perplexity_that_overflows_is_infinite(self):
        assert summary([SentenceLikelihood(["a"], -2000.0, -10.0, 0)])["perplexity"] == math.inf


def test_small_open_prefers_words_in_their_order(fixtures_root):
    model = LanguageModel("small-open")
    lines = (fixtures_root / "lm" / "test.txt").read_text().splitlines()[:40]
    sentences = [line.split() for line in lines]
    reversed_sentences = [sentence[::-1] for sentence in sentences]
    perplexity = summary(model.score(sentences))["perplexity"]
    assert perplexity < 600
    assert summary(model.score(reversed_sentences))["perplexity"] > 2 * perplexity


def test_a_text_of_unknown_words_is_reported(caplog):
    one_unknown = SentenceLikelihood(["a", "b", "c"], -1.0, -1.0, 1)
    assert summary([one_unknown])["unknown_share"] == 1 / 3
    assert not caplog.text
    summary([one_unknown._replace(n_unknown=2)])
    assert "2 of 3 words" in caplog.text
