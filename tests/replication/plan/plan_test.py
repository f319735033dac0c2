"""Tests of the runs that a table needs."""

import shutil

import pytest

from elmo_tasks.environment import config_variables
from elmo_tasks.replication import TASKS_OF, Exhibit, Experiment, plan
from elmo_tasks.shipped import FIXTURES


@pytest.fixture
def experiment(tmp_path):
    return Experiment(config_variables({}), tmp_path)


class TestPlan:
    @pytest.mark.parametrize(
        ("exhibit", "task", "names"),
        [
            ("table 1", "ner", ["baseline", "input"]),
            ("table 2", "snli", ["baseline", "both-top", "both-l2-1", "both"]),
            ("table 2", "squad", ["baseline", "both-top", "both-l2-1", "both-l2-0.001"]),
            ("table 2", "srl", ["baseline", "input-top", "input-l2-1", "input"]),
            ("table 3", "srl", ["input", "both", "output"]),
            ("table 6", "pos", ["layer-0", "layer-1", "layer-2"]),
            ("figure 2", "sst", ["both"]),
        ],
    )
    def test_the_variants_of_a_table(self, experiment, exhibit, task, names):
        """Oracle: the columns of the paper's tables."""
        assert [run.name for run in plan(experiment, Exhibit(exhibit), [task], 1)] == [
            f"{task}/{name}/1" for name in names
        ]

    def test_transformers_come_after_elmo(self, experiment, checkpoint, tmp_path):
        """Oracle: names by hand; the digest of a run is that of the checkpoint's files, wherever they are."""
        names = [("tiny", str(checkpoint("bert"))), ("other", str(checkpoint("electra")))]
        runs = plan(experiment, Exhibit.TABLE_1, ["ner"], 1, contextual=names)
        assert [run.variant for run in runs] == ["baseline", "input", "input-tiny", "input-other"]
        assert runs[2].about["transformer tiny"] == names[0][1]
        copied = shutil.copytree(names[0][1], tmp_path / "copied")
        again = plan(experiment, Exhibit.TABLE_1, ["ner"], 1, contextual=[("tiny", str(copied))])
        assert again[2].digest != runs[3].digest
        experiment = Experiment(config_variables({}), tmp_path)
        again = plan(experiment, Exhibit.TABLE_1, ["ner"], 1, contextual=[("tiny", str(copied))])
        assert again[2].digest == runs[2].digest
        (copied / "config.json").write_text((copied / "config.json").read_text() + " ")
        experiment = Experiment(config_variables({}), tmp_path)
        changed = plan(experiment, Exhibit.TABLE_1, ["ner"], 1, contextual=[("tiny", str(copied))])
        assert changed[2].digest != runs[2].digest
        with pytest.raises(
            ValueError, match="transformers and other biLMs are for table 1, not for table 2: omit --contextual"
        ):
            plan(experiment, Exhibit.TABLE_2, ["snli"], 1, contextual=names)

    def test_another_bilm_is_a_column_too(self, experiment, tmp_path):
        """Oracle: the run with it as the biLM of all; the digest is that of its weights, wherever they are."""
        folder = shutil.copytree(FIXTURES / "bilm_tiny", tmp_path / "copied")
        *_, run = plan(experiment, Exhibit.TABLE_1, ["ner"], 1, contextual=[("tuned", str(folder))])
        assert (run.variant, run.about["bilm"]) == ("input-tuned", None)
        assert run.about["biLM tuned"].startswith("copied (2 x ")
        other = Experiment(config_variables({"ELMO_TASKS_BILM": str(folder)}), tmp_path)
        _, of_all = plan(other, Exhibit.TABLE_1, ["ner"], 1)
        assert run.config == of_all.config
        *_, again = plan(experiment, Exhibit.TABLE_1, ["ner"], 1, contextual=[("tuned", str(FIXTURES / "bilm_tiny"))])
        assert again.digest == run.digest
        with (folder / "weights.hdf5").open("ab") as weights:
            weights.write(b"0")
        changed = Experiment(config_variables({}), tmp_path)
        *_, changed_run = plan(changed, Exhibit.TABLE_1, ["ner"], 1, contextual=[("tuned", str(folder))])
        assert changed_run.digest != run.digest

    def test_tables_share_runs(self, experiment):
        """Oracle: Table 1's ELMo is Table 2's lambda of 0.001 and Table 3's "input and output" for SNLI."""
        digests = [{run.digest for run in plan(experiment, Exhibit(f"table {n}"), ["snli"], 1)} for n in (1, 2, 3)]
        assert len(set.intersection(*digests)) == 1

    def test_each_table_and_figure_has_its_tasks(self):
        """Oracle: all of them but Table 5, which needs no training, and Table 7, which trains the biLM."""
        assert set(TASKS_OF) == set(Exhibit) - {Exhibit.TABLE_5, Exhibit.TABLE_7}

    def test_seed_by_seed(self, experiment):
        """Oracle: by hand; a task that is named twice is one."""
        names = [run.name for run in plan(experiment, Exhibit.TABLE_1, ["ner", "sst", "ner"], 2)]
        assert names[:4] == ["ner/baseline/1", "ner/input/1", "sst/baseline/1", "sst/both/1"]
        assert names[4:] == [name[:-1] + "2" for name in names[:4]]

    def test_figure_1_has_parts_of_the_training_set_too(self, experiment):
        """Oracle: by hand; the same size twice is one run, and all of it is the run of Table 1."""
        names = [run.name for run in plan(experiment, Exhibit.FIGURE_1, ["snli"], 1, ["20", "5", "5", "100%"])]
        assert names == [f"snli/{v}{part}/1" for v in ("baseline", "both") for part in ("-of-5", "-of-20", "")]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((Exhibit.TABLE_3, ["ner"], 1), "not about 'ner'"),
            ((Exhibit.TABLE_1, ["pos"], 1), "not about 'pos'"),
            ((Exhibit.TABLE_1, ["ner"], 0), "--seeds is 0"),
            ((Exhibit.TABLE_1, ["snli"], 1, ["5"]), "figure 1, not for table 1"),
            (
                (Exhibit.TABLE_1, ["ner"], 1, [], [("x", "a"), ("y", "b"), ("x", "c")]),
                "must differ, but 'x' is there twice",
            ),
        ],
    )
    def test_a_plan_that_is_impossible_is_refused(self, experiment, arguments, message):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=message):
            plan(experiment, *arguments)
