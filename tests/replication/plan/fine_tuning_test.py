"""Tests of the runs of Table 7 and of their texts."""

import json
from pathlib import Path

import pytest

from elmo_tasks.replication import TASK_TEXTS, TASKS, experiment_of, fine_tunings
from elmo_tasks.shipped import FIXTURES

BILM = FIXTURES / "bilm_words"


def experiment(tmp_path: Path, bilm: Path = BILM):
    return experiment_of(
        data=str(FIXTURES), bilm=str(bilm), results=tmp_path / "results", overrides={}, arguments={}, names={}
    )


class TestFineTunings:
    def test_a_bilm_without_a_softmax_is_refused(self, tmp_path):
        """Oracle: the message says how to learn one."""
        with pytest.raises(ValueError, match=r"bilm_tiny has none: learn one with .*bilm_softmax\.jsonnet"):
            fine_tunings(experiment(tmp_path, FIXTURES / "bilm_tiny"), [])

    def test_the_text_of_each_task_is_that_of_its_files(self, tmp_path):
        """Oracle: words that are counted in the files of the fixtures; each sentence is there once."""
        runs = fine_tunings(experiment(tmp_path), list(TASK_TEXTS.values()))
        assert [run.name for run in runs] == [f"bilm/{name}/1" for name in TASK_TEXTS]
        texts = {run.variant: Path(run.config["train_data_path"]).read_text().splitlines() for run in runs}
        assert all(len(set(lines)) == len(lines) > 0 for lines in texts.values())
        blocks = [block.splitlines() for block in (FIXTURES / "ner" / "train.txt").read_text().split("\n\n")]
        sentences = [[line.split()[0] for line in block] for block in blocks if block and "DOCSTART" not in block[0]]
        assert texts["ner"][0].split() == sentences[0]
        pairs = [json.loads(line) for line in (FIXTURES / "snli" / "train.jsonl").read_text().splitlines()]
        assert texts["snli"][0].replace(" ", "") == pairs[0]["sentence1"].replace(" ", "")
        # Sentences, not phrases: as many as there are trees, but for those that are there twice.
        trees = (FIXTURES / "sst" / "train.txt").read_text().splitlines()
        assert len(texts["sst"]) <= len(trees) < 2 * len(texts["sst"])

    def test_it_is_one_epoch_from_the_weights_of_the_bilm(self, tmp_path):
        """Oracle: the config, and that of `bilm_finetune.jsonnet` in words."""
        (run,) = fine_tunings(experiment(tmp_path), [TASK_TEXTS["ner"]])
        assert run.config["model"]["pretrained_file"] == str(BILM / "weights.hdf5")
        assert run.config["vocabulary"] == {"type": "elmo_lm_from_file", "path": str(BILM / "vocab.txt")}
        assert run.config["trainer"]["num_epochs"] == 1
        assert "elmo_perplexity_before" in run.config["trainer"]["callbacks"]
        assert run.config["validation_data_path"].endswith("dev.txt")

    def test_the_identity_names_no_folder_of_this_machine(self, tmp_path):
        """Oracle: the same identity in two folders of results."""
        one, other = (fine_tunings(experiment(tmp_path / name), [TASK_TEXTS["sst"]])[0] for name in "ab")
        assert one.identity == other.identity
        assert str(tmp_path) not in json.dumps(one.identity)


class TestTaskTexts:
    def test_all_are_of_tasks(self):
        """Oracle: the names of the tasks."""
        assert {text.task for text in TASK_TEXTS.values()} <= set(TASKS)
