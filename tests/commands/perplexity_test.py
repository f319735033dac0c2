"""Tests of `allennlp elmo-perplexity`."""

import json
import math
import re
import shutil
import unicodedata
from types import SimpleNamespace

import h5py
import pytest

from elmo_tasks.analysis import SentenceLikelihood
from elmo_tasks.commands import perplexity as module
from elmo_tasks.data import LmText
from tests.language_models import metrics_of

pytestmark = pytest.mark.slow


def printed(output: str) -> dict[str, float]:
    rows = re.findall(r"^(\w+) +([\d,.]+)$", output, flags=re.MULTILINE)
    return {name: float(value.replace(",", "")) for name, value in rows}


class TestPerplexityOfText:
    @pytest.mark.parametrize(("n_unknown", "is_said"), [(1, False), (2, True)])
    def test_many_unknown_words_are_said(self, command, monkeypatch, capsys, n_unknown, is_said):
        """Oracle: by hand: one of ten words is 10%, which is not above it, and two are."""
        scores = [SentenceLikelihood(["w"] * 10, -1.0, -1.0, n_unknown)]
        monkeypatch.setattr(module, "LanguageModel", lambda folder: SimpleNamespace(score=lambda text: iter(scores)))
        monkeypatch.setattr(module, "LmText", lambda path, nfc: SimpleNamespace(irregular=None))
        command("elmo-perplexity", "folder", "text.txt")
        line = "20% of the words are not in the vocabulary. All of them count as one word"
        assert (line in capsys.readouterr().err) == is_said

    def test_it_is_the_validation_perplexity_of_the_run(self, lm_run, exported, command, fixtures_root, capsys):
        """Oracle: the metrics of the training, on the same text, in batches of another kind."""
        capsys.readouterr()
        command("elmo-perplexity", exported, fixtures_root / "lm" / "dev.txt")
        found, expected = printed(capsys.readouterr().out), metrics_of(lm_run)
        for name in ("perplexity", "forward_perplexity", "backward_perplexity"):
            assert found[name] == pytest.approx(expected[f"best_validation_{name}"], rel=1e-4)
        assert found["unknown_share"] == pytest.approx(expected["best_validation_unknown_share"], abs=1e-4)
        assert (found["sentences"], found["words"]) == (103, 1264)

    def test_the_text_is_put_into_nfc(self, exported, command, tmp_path, capsys):
        """Oracle: the perplexity of the text in NFC; without it a different one."""
        found = {}
        for form in ("NFC", "NFD"):
            text = unicodedata.normalize(form, "The café is naïve .\n")
            (tmp_path / f"{form}.txt").write_text(text, encoding="utf-8")
            capsys.readouterr()
            command("elmo-perplexity", exported, tmp_path / f"{form}.txt")
            found[form] = printed(capsys.readouterr().out)["perplexity"]
        command("elmo-perplexity", exported, tmp_path / "NFD.txt", "--no-nfc")
        assert found["NFC"] == found["NFD"] != printed(capsys.readouterr().out)["perplexity"]

    def test_it_writes_the_likelihood_of_each_sentence(self, exported, command, fixtures_root, tmp_path, capsys):
        """Oracle: the sentences of the text in their order; the perplexity that is printed, from their sum."""
        text, file = fixtures_root / "lm" / "dev.txt", tmp_path / "scores.jsonl"
        capsys.readouterr()
        command("elmo-perplexity", exported, text, "--output-file", file)
        scores = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert [score["words"] for score in scores] == list(LmText(text))
        n_predictions = sum(len(score["words"]) + 1 for score in scores)
        found = printed(capsys.readouterr().out)
        for direction in ("forward", "backward"):
            mean = -sum(score[direction] for score in scores) / n_predictions
            assert found[f"{direction}_perplexity"] == pytest.approx(math.exp(mean), rel=1e-4)
        n_words = sum(len(score["words"]) for score in scores)
        assert found["unknown_share"] == pytest.approx(sum(s["n_unknown"] for s in scores) / n_words, abs=1e-4)

    def test_lines_that_are_no_sentence_are_said(self, exported, command, tmp_path, capsys):
        """Oracle: by hand: one empty line, and one of which two sentences are made."""
        (tmp_path / "text.txt").write_text("It was cold .\n\n" + "cold " * 300 + "\n")
        command("elmo-perplexity", exported, tmp_path / "text.txt")
        captured = capsys.readouterr()
        assert re.search(r"^sentences +3$", captured.out, re.MULTILINE)
        assert "of the lines there are 1 empty (skipped), 1 of more than 250 words (split)" in captured.err

    def test_a_text_may_be_several_files(self, exported, command, fixtures_root, capsys):
        """Oracle: the numbers of lines and words of dev and test."""
        capsys.readouterr()
        command("elmo-perplexity", exported, fixtures_root / "lm" / "*e*t.txt")
        assert printed(capsys.readouterr().out)["sentences"] == 163
        command("elmo-perplexity", exported, fixtures_root / "lm" / "[dt]e*.txt")
        found = printed(capsys.readouterr().out)
        assert (found["sentences"], found["words"]) == (103 + 163, 1264 + 2212)

    def test_a_pattern_that_matches_nothing_is_an_error(self, exported, error_of, tmp_path):
        """Oracle: the message names the pattern."""
        assert re.search(
            r"pattern that matches files, but .*none-\*", error_of("elmo-perplexity", exported, tmp_path / "none-*.txt")
        )

    def test_a_broken_line_is_an_error(self, exported, error_of, tmp_path):
        """Oracle: the message names the file and the line."""
        (tmp_path / "text.txt").write_bytes(b"a b\n\xff c\n")
        assert re.search(
            r"text\.txt, line 2: the file must be UTF-8", error_of("elmo-perplexity", exported, tmp_path / "text.txt")
        )

    def test_without_a_softmax_there_is_no_perplexity(self, lm_run, command, error_of, fixtures_root, tmp_path):
        """Oracle: the message names the file and what is missing."""
        command("elmo-export", lm_run, tmp_path / "small", "--without-softmax")
        assert re.search(
            r"weights\.hdf5 must hold a softmax",
            error_of("elmo-perplexity", tmp_path / "small", fixtures_root / "lm" / "dev.txt"),
        )

    def test_a_vocabulary_of_another_length_is_refused(self, exported, error_of, fixtures_root):
        """Oracle: the message, with both files and numbers, where the weights do not say which words are theirs."""
        with h5py.File(exported / "weights.hdf5", "r+") as file:
            del file.attrs["vocab_sha256"]
        words = (exported / "vocab.txt").read_text().splitlines()
        (exported / "vocab.txt").write_text("".join(f"{word}\n" for word in [*words, "another"]))
        message = rf"vocab\.txt must have as many words as .*weights\.hdf5, {len(words)}, but has {len(words) + 1}"
        assert re.search(message, error_of("elmo-perplexity", exported, fixtures_root / "lm" / "dev.txt"))

    def test_a_vocabulary_of_other_words_is_refused(self, exported, error_of, fixtures_root):
        """Oracle: the message; with as many words in another order, the perplexity would mean nothing."""
        words = (exported / "vocab.txt").read_text().splitlines()
        words[-2:] = reversed(words[-2:])
        (exported / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
        error = error_of("elmo-perplexity", exported, fixtures_root / "lm" / "dev.txt")
        assert re.search(r"weights\.hdf5 must predict the words of its own vocab\.txt", error)

    def test_the_text_is_not_replaced(self, exported, error_of, fixtures_root, tmp_path):
        """Oracle: the message and the text, which is one of those of a folder."""
        text = tmp_path / "texts" / "dev.txt"
        text.parent.mkdir()
        shutil.copy(fixtures_root / "lm" / "dev.txt", text)
        before = text.read_bytes()
        error = error_of("elmo-perplexity", exported, text.parent, "--output-file", text)
        assert "must be another file than what is read" in error and text.read_bytes() == before

    @pytest.mark.parametrize("name", ["options.json", "weights.hdf5", "vocab.txt"])
    def test_the_bilm_is_not_replaced(self, exported, error_of, fixtures_root, name):
        """Oracle: the message and the file."""
        before = (exported / name).read_bytes()
        error = error_of(
            "elmo-perplexity", exported, fixtures_root / "lm" / "dev.txt", "--output-file", exported / name
        )
        assert "must be another file than what is read" in error and (exported / name).read_bytes() == before

    def test_an_output_that_cannot_be_written_is_an_error(self, exported, error_of, fixtures_root, tmp_path):
        """Oracle: the message names it."""
        text = fixtures_root / "lm" / "dev.txt"
        assert f"'{tmp_path}' is a folder" in error_of("elmo-perplexity", exported, text, "--output-file", tmp_path)
        (tmp_path / "file").touch()
        output = tmp_path / "file" / "scores.jsonl"
        assert f"'{tmp_path / 'file'}'" in error_of("elmo-perplexity", exported, text, "--output-file", output)

    @pytest.mark.parametrize("name", ["options.json", "weights.hdf5", "vocab.txt"])
    def test_a_file_that_is_not_there_is_an_error(self, exported, error_of, fixtures_root, name):
        """Oracle: the message names the file."""
        (exported / name).unlink()
        assert re.search(re.escape(name), error_of("elmo-perplexity", exported, fixtures_root / "lm" / "dev.txt"))
