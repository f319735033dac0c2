from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.bilm.options import DictionaryOptions
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.data import LmReader, LmVocabulary
from elmo_tasks.data.lm_data_loader import batch_tensors
from elmo_tasks.models import BilmLanguageModel
from tests.bilm.helpers import plain_likelihoods

OPTIONS = BilmOptions(
    cell_dim=12,
    projection_dim=8,
    n_layers=2,
    cell_clip=3.0,
    projection_clip=3.0,
    character_dim=4,
    filters=((1, 4), (2, 4)),
    n_highway=1,
)
# "zebra" and "yak" are not in the vocabulary.
SENTENCES = [
    "the cat sat .",
    "the zebra and the yak sat",
    "cat",
    "a dog saw the cat and the cat saw a dog .",
]
TEXT = ["the the the the cat cat cat cat sat sat sat . . .", "dog dog dog saw saw and and a a a"]


@pytest.fixture(scope="module")
def vocab() -> LmVocabulary:
    """`<S>`, `</S>`, `<UNK>` and eight words."""
    return LmVocabulary.from_counts(LmReader().text_to_instance(line.split()) for line in TEXT)


def make(vocab: Vocabulary, **arguments: Any) -> BilmLanguageModel:
    torch.manual_seed(0)
    model = BilmLanguageModel(vocab, OPTIONS.to_dict(), **arguments)
    with torch.no_grad():
        for parameter in model.parameters():
            # A bias of 0 would hide code that skips it.
            parameter.add_(torch.randn(parameter.shape) * 0.2)
        # The row for padding, which the public format lacks.
        model.bilm.character_encoder.embedding.weight[0] = 0.0
    return model


def batch(vocab: Vocabulary, sentences: list[str] = SENTENCES) -> dict[str, torch.Tensor]:
    return batch_tensors(sentences, vocab.get_token_to_index_vocabulary("lm"))


class TestLossInEvaluation:
    @pytest.mark.parametrize("softmax", ["full", "sampled"])
    def test_it_matches_a_plain_loop(self, vocab, softmax):
        """Compared with a float64 loop over sentences and words."""
        model = make(vocab, softmax=softmax, n_samples=4).eval()
        output = model(**batch(vocab))
        state = model.softmax.state_dict()
        weights = (state["weight"], state["bias"])
        numbers = vocab.get_token_to_index_vocabulary("lm")
        likelihoods = []
        for sentence in SENTENCES:
            words = sentence.split()
            likelihoods.append(plain_likelihoods(model.bilm, weights, numbers, words))
        expected = torch.tensor(likelihoods)
        n_predictions = sum(len(sentence.split()) + 1 for sentence in SENTENCES)
        assert output["loss"].item() == pytest.approx(
            -expected.sum().item() / (2 * n_predictions), rel=1e-5
        )
        metrics = model.get_metrics(reset=True)
        forward, backward = (-expected.sum(0) / n_predictions).exp().tolist()
        assert metrics["forward_perplexity"] == pytest.approx(forward, rel=1e-5)
        assert metrics["backward_perplexity"] == pytest.approx(backward, rel=1e-5)
        assert metrics["perplexity"] == pytest.approx((forward + backward) / 2, rel=1e-5)
        n_words = n_predictions - len(SENTENCES)
        assert metrics["unknown_share"] == pytest.approx(2 / n_words)
        assert set(metrics) == {
            "forward_perplexity",
            "backward_perplexity",
            "perplexity",
            "unknown_share",
        }

    def test_batches_and_padding_do_not_matter(self, vocab):
        model = make(vocab).eval()
        together = model(**batch(vocab))["loss"].item()
        alone = [model(**batch(vocab, [sentence]))["loss"].item() for sentence in SENTENCES]
        assert together == pytest.approx(
            np.average(alone, weights=[len(s.split()) + 1 for s in SENTENCES]), rel=1e-5
        )


class TestLossInTraining:
    def test_without_dropout_and_samples_it_equals_evaluation(self, vocab):
        model = make(vocab, softmax="full", dropout=0.0)
        loss = model(**batch(vocab))["loss"]
        metrics = model.get_metrics(reset=True)
        assert metrics["perplexity"] == pytest.approx(loss.exp().item(), rel=1e-5)
        assert set(metrics) == {"perplexity", "tokens_per_second"}
        assert loss.item() == pytest.approx(model.eval()(**batch(vocab))["loss"].item(), rel=1e-5)

    def test_a_sampled_loss_has_a_different_name(self, vocab):
        model = make(vocab, n_samples=4, dropout=0.0)
        losses = {model(**batch(vocab))["loss"].item() for _ in range(5)}
        assert len(losses) > 1
        assert set(model.get_metrics()) == {"sampled_perplexity", "tokens_per_second"}

    @pytest.mark.parametrize("n_samples", [11, 12])
    def test_too_few_words_for_samples_use_the_full_softmax(self, vocab, n_samples):
        model = make(vocab, n_samples=n_samples, dropout=0.0)
        assert model.softmax.n_samples is None
        full = make(vocab, softmax="full", dropout=0.0)
        assert model(**batch(vocab))["loss"].item() == full(**batch(vocab))["loss"].item()
        assert make(vocab, n_samples=10).softmax.n_samples == 10

    @pytest.mark.parametrize(
        "instructions, precision", [("bf16", "bf16"), ("vnni", "float32"), ("avx2", "float32")]
    )
    def test_auto_is_bf16_only_with_instructions_for_it(
        self, monkeypatch, vocab, instructions, precision
    ):
        monkeypatch.setattr("elmo_tasks.bilm.precision.cpu_instructions", lambda: instructions)
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        assert make(vocab, precision="auto").bilm.precision == precision

    @pytest.mark.parametrize(
        "arguments", [{"n_samples": 4}, pytest.param({"softmax": "full"}, marks=pytest.mark.weekly)]
    )
    def test_it_can_be_trained(self, vocab, arguments):
        model = make(vocab, **arguments)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        perplexities = []
        for step in range(40):
            optimizer.zero_grad()
            model(**batch(vocab))["loss"].backward()
            if step == 0:
                assert [name for name, each in model.named_parameters() if each.grad is None] == []
                doubled = [2.0 * each.grad for each in model.parameters()]
                for each in model.parameters():
                    each.grad.mul_(2.0)
                assert all(
                    torch.equal(each.grad, other)
                    for each, other in zip(model.parameters(), doubled, strict=True)
                )
            optimizer.step()
            if step in (0, 39):
                model.get_metrics(reset=True)
                model.eval()(**batch(vocab))
                perplexities.append(model.get_metrics(reset=True)["perplexity"])
                model.train()
        assert perplexities[1] < perplexities[0] * 2 / 3


class TestWeightsToGoOnFrom:
    @pytest.fixture
    def pretrained(self, vocab) -> BilmLanguageModel:
        model = make(vocab)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.5)
        return model

    @staticmethod
    def save(
        model: BilmLanguageModel, folder: Path, softmax: dict[str, torch.Tensor] | None
    ) -> str:
        model.bilm.save(folder / "options.json", folder / "weights.hdf5", softmax=softmax)
        return str(folder / "weights.hdf5")

    @pytest.mark.parametrize("arguments", [{"softmax": "full"}, {"n_samples": 4}])
    def test_bilm_and_softmax_come_from_the_file(self, vocab, pretrained, tmp_path, arguments):
        file = self.save(pretrained, tmp_path, pretrained.softmax.state_dict())
        model = BilmLanguageModel(vocab, OPTIONS.to_dict(), pretrained_file=file, **arguments)
        state, expected = model.state_dict(), pretrained.state_dict()
        assert state.keys() == expected.keys()
        assert [name for name in state if not torch.equal(state[name], expected[name])] == []

    def test_a_missing_softmax_starts_from_random_weights(
        self, vocab, pretrained, tmp_path, caplog
    ):
        file = self.save(pretrained, tmp_path, None)
        model = BilmLanguageModel(vocab, OPTIONS.to_dict(), pretrained_file=file)
        assert torch.equal(
            model.bilm.forward_layers[1].kernel, pretrained.bilm.forward_layers[1].kernel
        )
        assert not model.softmax.bias.any()
        assert "weights.hdf5 has no softmax" in caplog.text

    def test_a_softmax_over_other_words_is_refused(self, vocab, pretrained, tmp_path):
        softmax = LmSoftmax(12, OPTIONS.projection_dim).state_dict()
        file = self.save(pretrained, tmp_path, softmax)
        with pytest.raises(RuntimeError, match="12"):
            BilmLanguageModel(vocab, OPTIONS.to_dict(), pretrained_file=file)

    def test_a_softmax_is_read_only_if_requested(self, vocab, pretrained, tmp_path, caplog):
        file = self.save(pretrained, tmp_path, LmSoftmax(12, OPTIONS.projection_dim).state_dict())
        model = BilmLanguageModel(
            vocab, OPTIONS.to_dict(), pretrained_file=file, pretrained_softmax=False
        )
        assert torch.equal(
            model.bilm.forward_layers[1].kernel, pretrained.bilm.forward_layers[1].kernel
        )
        assert model.softmax.n_words == 11 and not model.softmax.bias.any()
        assert "has no softmax" not in caplog.text

    def test_a_bilm_with_dictionaries_is_not_trained(self, vocab):
        sizes = DictionaryOptions(n_words=9, word_dim=3)
        options = BilmOptions(
            cell_dim=4,
            projection_dim=3,
            character_dim=0,
            filters=(),
            n_highway=0,
            dictionaries=sizes,
        )
        with pytest.raises(ConfigurationError, match="dictionaries"):
            BilmLanguageModel(vocab, options.to_dict())


def test_a_word_that_allennlp_reads_as_a_newline_is_kept(tmp_path):
    vocabulary = LmVocabulary.from_counts(
        [LmReader().text_to_instance(["@@NEWLINE@@", "a@@NEWLINE@@b"])]
    )
    vocabulary.save_to_files(str(tmp_path / "vocabulary"))
    words = make(LmVocabulary.from_files(str(tmp_path / "vocabulary"))).word_list().words
    assert words == ("<S>", "</S>", "<UNK>", "@@NEWLINE@@", "a@@NEWLINE@@b")
