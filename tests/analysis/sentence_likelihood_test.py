import math
from pathlib import Path

import h5py
import pytest
import torch

from elmo_tasks.analysis import LanguageModel, SentenceLikelihood, summary
from elmo_tasks.analysis import sentence_likelihood as module
from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.bilm.softmax.word_list import WordList
from tests.bilm.helpers import SMALL, random_bilm
from tests.paths import SHIPPED_BILM

# The special words stand elsewhere than in our lists.
WORDS = ["the", "<UNK>", "cat", "</S>", "sat", "<S>", "."]
SENTENCES = [["the", "cat", "sat", "."], ["yak"], ["the", "zebra", "and", "the", "cat"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A biLM with a softmax of random weights, in the public format."""
    torch.manual_seed(0)
    softmax = LmSoftmax(len(WORDS), SMALL.projection_dim)
    softmax.bias.data.normal_()
    random_bilm().save(tmp_path / "options.json", tmp_path / "weights.hdf5", softmax=softmax.state_dict())
    WordList(WORDS).save(tmp_path / "vocab.txt")
    return tmp_path


def plain_scores(folder: Path, sentence: list[str]) -> tuple[float, float]:
    """The sums of the scores of words."""
    forward, backward = plain_word_scores(folder, sentence)
    return sum(forward), sum(backward)


def plain_word_scores(folder: Path, sentence: list[str]) -> list[list[float]]:
    """From the layers, and the softmax as h5py reads it; forward the end comes last, backward the begin first."""
    bilm, dim = Bilm.from_files(folder / "options.json", folder / "weights.hdf5"), SMALL.projection_dim
    with h5py.File(folder / "weights.hdf5") as file:
        weight, bias = (torch.from_numpy(file[f"softmax/{name}"][...]).double() for name in "Wb")
    numbers = [WORDS.index(word if word in WORDS else "<UNK>") for word in sentence]
    with torch.no_grad():
        top, alone = bilm([sentence]).layers[-1][0], bilm.contexts([[]]).hidden
    forward = zip([alone[0, 0], *top[:, :dim]], [*numbers, WORDS.index("</S>")], strict=True)
    backward = zip([*top[:, dim:], alone[1, 0]], [WORDS.index("<S>"), *numbers], strict=True)
    return [
        [float((weight @ vector.double() + bias).log_softmax(0)[word]) for vector, word in pairs]
        for pairs in (forward, backward)
    ]


class TestLanguageModel:
    def test_sentences_have_the_likelihood_of_their_words(self, folder):
        """Oracle: a loop over words, with `Bilm.forward`, h5py and torch's softmax in float64."""
        scores = list(LanguageModel(folder).score(SENTENCES))
        assert [score.words for score in scores] == SENTENCES
        assert [score.n_unknown for score in scores] == [0, 1, 2]
        for score, sentence in zip(scores, SENTENCES, strict=True):
            forward, backward = plain_scores(folder, sentence)
            assert score.forward == pytest.approx(forward, rel=1e-5)
            assert score.backward == pytest.approx(backward, rel=1e-5)

    def test_words_have_their_own_likelihood(self, folder):
        """Oracle: the loop over words; the words of the list by hand."""
        model = LanguageModel(folder)
        for sentence in SENTENCES:
            scores = model.score_words(sentence)
            forward, backward = plain_word_scores(folder, sentence)
            assert [*scores.forward, scores.end] == pytest.approx(forward, rel=1e-5)
            assert [scores.begin, *scores.backward] == pytest.approx(backward, rel=1e-5)
            assert scores.is_known == [word in WORDS for word in sentence]

    def test_the_sentences_after_a_word_add_up_to_1(self, folder):
        """Oracle: the likelihoods of the empty sentence and of all words as the first one, by hand."""
        model = LanguageModel(folder)
        bilm = Bilm.from_files(folder / "options.json", folder / "weights.hdf5")
        first = bilm.contexts([[]]).hidden[0].expand(len(WORDS), -1)
        likelihood = model._softmax.log_likelihood(first, torch.arange(len(WORDS)))
        assert likelihood.exp().sum().item() == pytest.approx(1.0)
        (empty,) = model.score([[]])
        assert empty.forward == pytest.approx(likelihood[WORDS.index("</S>")].item(), rel=1e-5)

    def test_batches_do_not_matter_nor_does_what_comes_at_once(self, folder, monkeypatch):
        """Oracle: the scores in one batch, in the order of the sentences; no more is read than needed."""
        sentences = SENTENCES * 3
        model = LanguageModel(folder)
        whole = list(model.score(sentences))
        # Two sentences are read ahead, and are two batches.
        monkeypatch.setattr(module, "_BATCH_WORDS", 4)
        parts = list(model.score(iter(sentences)))
        assert [score.words for score in parts] == [score.words for score in whole]
        assert [score.forward for score in parts] == pytest.approx([score.forward for score in whole], rel=1e-5)
        rest = iter(sentences)
        next(model.score(rest))
        assert len(list(rest)) == len(sentences) - 2

    def test_no_sentences_have_no_scores(self, folder):
        """Oracle: by hand."""
        assert list(LanguageModel(folder).score([])) == []

    def test_files_that_do_not_fit_each_other_are_refused(self, folder):
        """Oracle: the messages: file, both numbers; and the missing softmax."""
        WordList([*WORDS, "more"]).save(folder / "vocab.txt")
        with pytest.raises(ValueError, match=r"vocab\.txt must have as many words as .*, 7, but has 8"):
            LanguageModel(folder)
        WordList(WORDS).save(folder / "vocab.txt")
        random_bilm().save(folder / "options.json", folder / "weights.hdf5")
        with pytest.raises(ValueError, match=r"weights\.hdf5 must hold a softmax"):
            LanguageModel(folder)
        (folder / "vocab.txt").unlink()
        with pytest.raises(
            FileNotFoundError, match=r"must have vocab\.txt, the words of its softmax, next to .*: export it"
        ):
            LanguageModel(folder)


class TestSummary:
    def test_it_is_of_a_prediction(self):
        """Oracle: by hand: 3 words in 2 sentences are 5 predictions."""
        scores = [
            SentenceLikelihood(["a", "b"], -5 * math.log(2), -1.0, 1),
            SentenceLikelihood(["c"], -5 * math.log(3), -4.0, 0),
        ]
        found = summary(iter(scores))
        assert found == {
            "forward_perplexity": pytest.approx(6.0),
            "backward_perplexity": pytest.approx(math.e),
            "perplexity": pytest.approx((6.0 + math.e) / 2),
            "unknown_share": pytest.approx(1 / 3),
            "sentences": 2,
            "words": 3,
        }

    def test_no_sentences_have_no_perplexity(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="must have a sentence"):
            summary([])

    def test_a_perplexity_that_no_number_holds_is_infinite(self):
        """Oracle: by hand, of a biLM that has diverged."""
        assert summary([SentenceLikelihood(["a"], -2000.0, -10.0, 0)])["perplexity"] == math.inf


class TestTheTrainedBilmThatShips:
    def test_it_prefers_words_in_their_order(self, fixtures_root):
        """Oracle: the same words from the end to the beginning, which is no English; and its perplexity here."""
        model = LanguageModel(SHIPPED_BILM)
        sentences = [line.split() for line in (fixtures_root / "lm" / "test.txt").read_text().splitlines()[:60]]
        written = summary(model.score(sentences))["perplexity"]
        turned_round = summary(model.score([sentence[::-1] for sentence in sentences]))["perplexity"]
        assert written < 600
        assert turned_round > 2 * written
