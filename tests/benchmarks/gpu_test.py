"""Tests of the scripts for a machine with a GPU, on a CPU."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from elmo_tasks import Elmo
from elmo_tasks.analysis.sentence_likelihood import LanguageModel, summary
from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.bilm.softmax.word_list import WordList
from tests.bilm.helpers import SMALL, allennlp_layers, random_bilm, save

TEXTS = {
    "train": [["the", "bank", "of", "the", "river"], ["a", "bank", "lends"], ["<S>", "of", "é", "the"], ["a"]] * 5,
    "dev": [["the", "river"], ["a", "a", "new", "bank"]],
    "test": [["the", "bank", "lends"], ["unheard", "of"], ["the"]],
}


@pytest.fixture
def folder(script, tmp_path, capsys):
    """Packed texts; of `train` in parts of 20 words or a few more."""
    script("lm_data").pack(tmp_path / "data", TEXTS, part_tokens=20)
    return tmp_path / "data"


class TestPlainElmo:
    @pytest.mark.parametrize("clips", [{}, {"cell_clip": None, "projection_clip": None}])
    def test_it_is_the_bilm_of_allennlp(self, script, tmp_path, clips):
        """Oracle: `allennlp.modules.elmo._ElmoBiLm` with the same weights, for its first batch."""
        from allennlp.modules.elmo import _ElmoBiLm

        # AllenNLP reads a clip of 0 as none, and no other number.
        bilm = random_bilm(replace(SMALL, n_highway=1, **{key: value or 1e9 for key, value in clips.items()}))
        theirs = _ElmoBiLm(*save(bilm, tmp_path)).eval()
        batch = sentences_to_character_ids([["a", "word", "é"], ["two"], ["of", "four", "words", "here"], ["x", "y"]])
        ours = script("plain_elmo").PlainElmo(bilm)(batch)
        for our, their in zip(ours, allennlp_layers(theirs, batch), strict=True):
            torch.testing.assert_close(our, their, rtol=0, atol=1e-6)


class TestLmData:
    def test_a_text_is_read_as_it_was_packed(self, script, folder):
        """Oracle: the words; each part is whole."""
        lm_data = script("lm_data")
        data = lm_data.LmData(folder, 100, torch.device("cpu"))
        words = lm_data._read(folder / "words.txt.xz", 1)[0].tobytes().decode().split("\n")
        for name, sentences in TEXTS.items():
            text = lm_data.read_text(folder, name)
            assert [words[token] for token in text.tokens] == [word for sentence in sentences for word in sentence]
            assert text.lengths.tolist() == [len(sentence) for sentence in sentences]
        assert len(list(folder.glob("train-*.xz"))) == 4
        # As often as others in the training text alone, in alphabetical order; words of the other texts are unknown.
        assert data.vocabulary.words == ("<S>", "</S>", "<UNK>", "the", "a", "bank", "of", "lends", "river", "é")

    def test_the_vocabulary_has_the_most_frequent_words_of_the_training_text(self, script, tmp_path, capsys):
        """Oracle: `WordList.from_counts` of the training text; in `dev` another word is the most frequent."""
        lm_data = script("lm_data")
        train = [["b", "a", "b", "c"], ["b", "c", "rare", "<S>"]]
        lm_data.pack(tmp_path, {"train": train, "dev": [["a"] * 9, ["new"] * 9]}, part_tokens=100, min_count=2)
        counts = Counter(word for sentence in train for word in sentence)
        for max_words in (4, 5, 100):
            expected = WordList.from_counts(counts, max_words=max_words, min_count=2)
            assert lm_data.LmData(tmp_path, max_words, torch.device("cpu")).vocabulary.words == expected.words

    def test_rare_words_have_large_numbers(self, script, tmp_path, monkeypatch, capsys):
        """Oracle: the words; two bytes hold the numbers of the first three."""
        lm_data = script("lm_data")
        monkeypatch.setattr(lm_data, "_RARE", 3)
        lm_data.pack(tmp_path, {"train": TEXTS["train"]}, part_tokens=1000)
        words = lm_data._read(tmp_path / "words.txt.xz", 1)[0].tobytes().decode().split("\n")
        tokens = lm_data.read_text(tmp_path, "train").tokens
        assert tokens.max() > 5
        assert [words[token] for token in tokens] == [word for sentence in TEXTS["train"] for word in sentence]

    def test_a_part_that_is_not_there_is_named_and_a_damaged_one_refused(self, script, folder, capsys):
        """Oracle: by hand."""
        lm_data = script("lm_data")
        (folder / "train-01.xz").unlink()
        assert lm_data.read_text(folder, "train").lengths.sum() < sum(map(len, TEXTS["train"]))
        assert "without train-01.xz" in capsys.readouterr().out
        (folder / "train-00.xz").write_bytes(b"x")
        with pytest.raises(ValueError, match=r"train-00\.xz is damaged or was replaced"):
            lm_data.read_text(folder, "train")
        (folder / "test-00.xz").unlink()
        with pytest.raises(ValueError, match=r"carry test-00\.xz"):
            lm_data.read_text(folder, "test")

    def test_a_batch_has_the_characters_and_numbers_of_its_words(self, script, folder):
        """Oracle: `sentences_to_character_ids` and the word list."""
        lm_data = script("lm_data")
        data, text = lm_data.LmData(folder, 7, torch.device("cpu")), lm_data.read_text(folder, "test")
        starts = torch.tensor([0, 5])
        batch = data.batch(torch.from_numpy(text.tokens), starts, torch.tensor([3, 1]))
        sentences = [["the", "bank", "lends"], ["the"]]
        assert torch.equal(batch["character_ids"], sentences_to_character_ids(sentences))
        assert batch["word_ids"].tolist() == data.vocabulary.indices(["the", "bank", "lends", "the"])


class TestBatchesOf:
    def test_an_epoch_has_each_sentence_once_in_batches_that_are_full(self, script):
        """Oracle: all numbers; the budget of words; the next epoch has another order, the same seed the same."""
        lm_training = script("lm_training")
        settings = lm_training.Settings(tokens=60)
        lengths = np.random.default_rng(0).integers(1, 30, 500)
        orders = [list(lm_training.batches_of(lengths, epoch, settings)) for epoch in (0, 1, 0)]
        for batches in orders:
            assert sorted(np.concatenate(batches)) == list(range(500))
            assert all((lengths[batch] + 2).sum() <= 60 for batch in batches)
        assert [batch.tolist() for batch in orders[0]] == [batch.tolist() for batch in orders[2]]
        assert [batch.tolist() for batch in orders[0]] != [batch.tolist() for batch in orders[1]]


class TestTraining:
    def settings(self, script, **others):
        return script("lm_training").Settings(
            **{**dict(size="tiny", max_words=8, n_samples=3, steps=5, tokens=60, warmup=2, lr=0.02), **others},
            precision="float32",
        )

    def training(self, script, folder, **others):
        lm_data, cpu = script("lm_data"), torch.device("cpu")
        settings = self.settings(script, **others)
        data = lm_data.LmData(folder, settings.max_words, cpu)
        return script("lm_training").Training(settings, data, lm_data.read_text(folder, "train"), cpu), data

    def test_an_interrupted_one_ends_with_the_same_weights(self, script, folder, tmp_path, capsys):
        """Oracle: the weights of one that was not interrupted, bit for bit; across the end of an epoch."""
        whole, _ = self.training(script, folder)
        assert whole.run(tmp_path / "whole.pt", minutes=9, checkpoint_minutes=9)
        first, _ = self.training(script, folder)
        for _ in range(3):
            first.run_step()
        first.save(tmp_path / "part.pt")
        epoch = first.epoch
        first.run_step()  # Of which nothing is left after a kill.
        second, _ = self.training(script, folder)
        second.load(tmp_path / "part.pt")
        assert (second.step, second.epoch) == (3, epoch)
        assert second.run(tmp_path / "part.pt", minutes=9, checkpoint_minutes=9) and second.epoch > 0
        for module in ("bilm", "softmax"):
            ours, theirs = (getattr(training, module).state_dict() for training in (second, whole))
            assert all(torch.equal(ours[name], weight) for name, weight in theirs.items())

    def test_time_that_is_up_ends_a_piece_with_a_checkpoint(self, script, folder, tmp_path, capsys):
        """Oracle: by hand; other settings cannot resume it."""
        training, _ = self.training(script, folder)
        assert not training.run(tmp_path / "a.pt", minutes=0.0, checkpoint_minutes=9)
        other, _ = self.training(script, folder, lr=0.01)
        with pytest.raises(ValueError, match=r"a\.pt was made with lr 0\.02, but now it is 0\.01"):
            other.load(tmp_path / "a.pt")

    def test_a_loss_that_is_not_a_number_is_an_error(self, script, folder, tmp_path):
        """Oracle: the message."""
        training, _ = self.training(script, folder)
        with torch.no_grad():
            training.softmax.bias.fill_(torch.nan)
        with pytest.raises(ValueError, match="the loss of step 1 is nan: lower the learning rate"):
            training.run(tmp_path / "a.pt", minutes=9, checkpoint_minutes=9, every=1)

    @pytest.mark.parametrize("n_samples", [3, 0])
    def test_what_is_exported_has_the_perplexity_of_elmo_perplexity(self, script, folder, tmp_path, capsys, n_samples):
        """Oracle: `summary` of the exported biLM on the words of the test text; `Elmo` reads it."""
        training, data = self.training(script, folder, n_samples=n_samples)
        training.run(tmp_path / "a.pt", minutes=9, checkpoint_minutes=9)
        found = script("train_bilm").export(training, data, tmp_path / "bilm", torch.float16)
        expected = summary(LanguageModel(tmp_path / "bilm").score(TEXTS["test"]))
        assert found == pytest.approx({name: expected[name] for name in found}, rel=1e-5)
        assert found["unknown_share"] > 0
        (vectors,) = Elmo.from_pretrained(tmp_path / "bilm").embed([["the", "bank"]])
        assert vectors.shape == (2, 16)

    @pytest.mark.parametrize("schedule", ["linear", "cosine"])
    def test_the_learning_rate_rises_and_falls(self, script, schedule):
        """Oracle: by hand, at the ends and in the middle of both slopes."""
        settings = self.settings(script, steps=102, warmup=2, lr=1.0, schedule=schedule)
        rates = [settings.rate(step) for step in (0, 1, 2, 52, 102)]
        assert rates == pytest.approx([0.5, 1.0, 1.0, 0.5, 0.0])


class TestRecords:
    def test_what_is_there_is_not_measured_again(self, script, tmp_path, capsys):
        """Oracle: by hand; after an error, or a line that was cut off, a measurement is made again."""
        made = []

        def measurement(name: str, error: bool = False):
            def make():
                made.append(name)
                if error:
                    raise RuntimeError("CUDA out of memory\nmore")
                return {"tokens_per_second": 5}

            return name, make

        path = tmp_path / "records.jsonl"
        records = script("records").Records(path, 1.0)
        records.measure(*measurement("a"))
        records.measure(*measurement("b", error=True))
        assert records.status() == 3
        path.write_text(path.read_text() + '{"name": "c", "tok')
        records = script("records").Records(path, 1.0)
        for name in "abc":
            records.measure(*measurement(name))
        assert records.status() == 0 and made == ["a", "b", "b", "c"]
        lines = [line for line in path.read_text().splitlines() if line.endswith("}")]
        assert [json.loads(line)["name"] for line in lines] == ["a", "b", "c"]
        assert json.loads(lines[0])["tokens_per_second"] == 5 and json.loads(lines[0])["device"]

    def test_nothing_is_begun_when_the_time_is_up(self, script, tmp_path, capsys):
        """Oracle: by hand."""
        records = script("records").Records(None, 0.0)
        records.measure("a", lambda: pytest.fail("it was begun"))
        assert records.status() == 3
