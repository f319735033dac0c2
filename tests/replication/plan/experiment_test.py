"""Tests of the data, biLM and settings that the runs of a table share."""

import json
import shutil

import pytest

from elmo_tasks.environment import config_variables
from elmo_tasks.replication import TASKS, Experiment, Variant
from tests.paths import TINY_BILM


@pytest.fixture
def experiment(tmp_path):
    """On the data that ships."""

    def make(data=None, **kwargs):
        environ = {} if data is None else {"ELMO_TASKS_DATA": str(data)}
        return Experiment(config_variables(environ), tmp_path / "results", **kwargs)

    return make


ELMO = Variant.elmo(TASKS["snli"])


class TestExperiment:
    def test_a_run_has_its_seed_three_times_and_is_evaluated_on_test(self, experiment):
        """Oracle: what AllenNLP reads."""
        run = experiment().run("snli", ELMO, 7)
        assert {run.config[f"{name}_seed"] for name in ("random", "numpy", "pytorch")} == {7}
        assert run.config["evaluate_on_test"] is True
        assert run.identity["seed"] == 7

    def test_seeds_and_variants_are_other_runs(self, experiment):
        """Oracle: their digests."""
        made = experiment()
        runs = [made.run("snli", ELMO, 1), made.run("snli", ELMO, 2), made.run("snli", Variant.baseline(), 1)]
        assert len({run.digest for run in runs}) == 3
        assert made.run("snli", ELMO, 1).digest == runs[0].digest

    def test_data_elsewhere_is_the_same_run_and_other_data_another(self, experiment, fixtures_root, tmp_path):
        """Oracle: a copy of the data, which is then changed."""
        for name in ("snli", "glove"):
            shutil.copytree(fixtures_root / name, tmp_path / "copy" / name)
        run, copied = (experiment(data).run("snli", ELMO, 1) for data in (None, tmp_path / "copy"))
        assert run.digest == copied.digest
        assert run.config["train_data_path"] != copied.config["train_data_path"]
        with open(tmp_path / "copy" / "snli" / "test.jsonl", "a") as file:
            file.write("\n")
        assert experiment(tmp_path / "copy").run("snli", ELMO, 1).digest != run.digest

    def test_overrides_are_for_all_tasks_or_for_one(self, experiment):
        """Oracle: by hand; entries of a task take precedence."""
        made = experiment(overrides={"": {"trainer.num_epochs": 2}, "ner": {"trainer.num_epochs": 3}})
        runs = [made.run(task, Variant.baseline(), 1) for task in ("snli", "ner")]
        assert [run.config["trainer"]["num_epochs"] for run in runs] == [2, 3]
        assert runs[1].about["overrides"] == {"trainer.num_epochs": 3}
        assert runs[0].digest != experiment().run("snli", Variant.baseline(), 1).digest

    def test_a_part_of_the_training_set_is_another_run_with_a_file_of_its_own(self, experiment):
        """Oracle: the lines of the file, which is written once."""
        made = experiment()
        assert made.size("snli", "5") == 5
        run = made.run("snli", ELMO, 1, 5)
        made.write_subset("snli", 5)
        path = made.subset_path("snli", 5)
        assert run.config["train_data_path"] == str(path)
        assert len(path.read_text().splitlines()) == 5
        assert run.identity["config"]["train_data_path"] == "5 of data/snli/train.jsonl"
        before = path.stat().st_mtime_ns
        made.write_subset("snli", 5)
        assert path.stat().st_mtime_ns == before

    def test_a_caption_learns_the_names_of_data_and_bilm(self, experiment):
        """Oracle: by hand, and the options of the biLM that ships."""
        about = experiment(names={"snli": "SNLI 1.0"}).run("snli", ELMO, 1).about
        assert about["data"] == "SNLI 1.0"
        assert about["bilm"].startswith("small-open (2 x ") and about["bilm"].endswith("vectors of 256)")

    @pytest.mark.parametrize("n_layers", [1, 3])
    def test_layers_alone_are_those_of_two_lstms(self, tmp_path, experiment, n_layers):
        """Oracle: the message; of the biLM that ships there are such runs."""
        assert experiment().run("pos", Variant.of_layer(2), 1).name == "pos/layer-2/1"
        bilm = tmp_path / "bilm"
        shutil.copytree(TINY_BILM, bilm)
        options = json.loads((bilm / "options.json").read_text())
        options["lstm"]["n_layers"] = n_layers
        (bilm / "options.json").write_text(json.dumps(options))
        made = Experiment(config_variables({"ELMO_TASKS_BILM": str(bilm)}), tmp_path / "results")
        with pytest.raises(ValueError, match=f"with 2 LSTMs each way, but this one has {n_layers}"):
            made.run("pos", Variant.of_layer(1), 1)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"overrides": {"nre": {}}}, "one is 'nre'"),
            ({"overrides": {"": {"random_seed": 3}}}, "random_seed itself"),
            ({"arguments": {"snli": {"elmo_at": ["input"]}}}, "elmo_at is what the variants"),
            ({"overrides": {"": {"trainer.checkpointer.type": "default"}}}, "checkpointer"),
        ],
    )
    def test_unknown_tasks_and_what_runs_set_themselves_are_refused(self, experiment, given, message):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=message):
            experiment(**given)

    def test_parts_of_other_training_sets_are_refused(self, experiment):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="snli and srl, not of ner"):
            experiment().size("ner", "5")
