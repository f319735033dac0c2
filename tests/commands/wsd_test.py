"""Tests of `allennlp elmo-wsd`."""

import json

import pytest

from elmo_tasks.analysis import WsdScore
from elmo_tasks.analysis.wsd_corpus import WsdCorpus


class TestDisambiguateWords:
    def test_the_table_the_numbers_and_the_answers_agree(self, command, fixtures_root, tmp_path, capsys):
        """Oracle: the scores of the files with the answers, and the table, which has them in percent."""
        numbers, answers = tmp_path / "new" / "numbers.json", tmp_path / "answers"
        wordnet = fixtures_root / "wsd" / "wordnet"
        command("elmo-wsd", "--wordnet", wordnet, "--output-file", numbers, "--predictions", answers)
        output = capsys.readouterr().out
        found = json.loads(numbers.read_text())
        assert found["sets"]["mini-1"] == {"lemma_not_in_training": 2, "unanswered": 1}
        assert (found["senses"], found["instances_of_training"]) == (12, 17)
        assert len(list(answers.iterdir())) == 2 * 5
        for corpus in WsdCorpus.find(fixtures_root / "wsd" / "test"):
            lines = (answers / f"{corpus.name}.layer-1.key.txt").read_text().splitlines()
            given = {line.split()[0]: line.split()[1:] for line in lines}
            score = found["scores"]["layer 1"][corpus.name]
            assert score["f1"] == WsdScore.of(corpus.keys, given).f1
            assert f"{100 * score['f1']:.1f}" in output
        assert "first senses: WordNet" in output
        assert "Warning: 1 instances have no answer" in output

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--data", "nowhere"], "'nowhere/train' must hold data sets"),
            (["--wordnet", "nowhere"], "the folder of WordNet must have index.sense"),
            (["--bilm", "nowhere"], "a biLM must be one of"),
            (["--max-sentences", "0"], "--max-sentences must be at least 1, but is 0"),
            (["--predictions", "."], "--predictions must name a new folder"),
            (["--predictions", "x", "--output-file", "x"], "--output-file and --predictions must differ"),
            (["--predictions", "x", "--output-file", "./x/y.json"], "neither be below the other"),
            (["--predictions", "x/y", "--output-file", "x"], "neither be below the other"),
            (["--output-file", "file/x.json"], "File exists: 'file'"),
        ],
    )
    def test_an_error_is_one_line(self, command, tmp_path, monkeypatch, options, message):
        """Oracle: the message that the process ends with, which has one line."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "file").touch()
        with pytest.raises(SystemExit) as error:
            command("elmo-wsd", *options)
        assert str(error.value).startswith("allennlp elmo-wsd: error: ")
        assert message in str(error.value)
        assert "\n" not in str(error.value)

    def test_several_sets_to_learn_from_need_a_choice(self, command, fixtures_root, tmp_path, capsys):
        """Oracle: the message, and a run with the choice."""
        (tmp_path / "train").symlink_to(fixtures_root / "wsd" / "test")
        (tmp_path / "test").symlink_to(fixtures_root / "wsd" / "test")
        with pytest.raises(SystemExit, match=r"must have one data set to learn from, but has .*mini-2.*--train"):
            command("elmo-wsd", "--data", tmp_path)
        command("elmo-wsd", "--data", tmp_path, "--train", tmp_path / "train" / "mini-2.data.xml")
        assert "instances of mini-2" in capsys.readouterr().out
