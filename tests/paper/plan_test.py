import hashlib
import json

from allennlp.common import Params

from elmo_tasks.paper.measures import MEASURED, measured
from elmo_tasks.paper.numbers import TABLES, TRANSFORMER, variants_of
from elmo_tasks.paper.plan import Plan
from elmo_tasks.paper.train import sort_out
from tests.paths import CHECKOUT, FIXTURES, TINY_BILM, TRAINING_CONFIGS


def open_plan(tmp_path, **arguments):
    return Plan("open", **{"data": "data", "results": tmp_path, **arguments})


class TestOpenPlan:
    def test_what_is_published_is_of_the_plan(self, environment):
        """
        Whichever runs are finished: each file in `results/open` is accepted as one of its runs.
        """
        folder = CHECKOUT / "results" / "open"
        plan = open_plan(folder, bilm="small-open")
        runs = plan.runs(list(TABLES))
        scores, _, problems = sort_out(runs)
        assert not problems
        files = set(folder.glob("*/*/*.json"))
        assert files <= {run.file for run in runs}
        assert len(scores) == len(files)
        assert all(measured(plan, exhibit) is not None for exhibit in MEASURED)

    def test_all_runs_wait_for_a_better_epoch_with_and_without_elmo(self, environment, tmp_path):
        patience = {}
        for run in open_plan(tmp_path).runs(list(TABLES)):
            trainer = run.config["trainer"]
            assert run.patience == trainer["patience"]
            assert trainer["num_epochs"] > 3 * run.patience
            patience.setdefault((run.task, run.size), set()).add(run.patience)
        assert patience == {
            ("ner", None): {25},
            ("sst", None): {5},
            ("snli", None): {5},
            ("snli", 180): {50},
            ("snli", 1800): {20},
            ("squad", None): {5},
            ("srl", None): {5},
            ("srl", 105): {50},
            ("srl", 1053): {20},
            ("coref", None): {10},
            ("pos", None): {4},
        }

    def test_overrides_of_a_command_line_come_before_those_of_a_size(self, environment, tmp_path):
        changes = {"snli": {"overrides": {"trainer.patience": 7}}}
        runs = open_plan(tmp_path, changes=changes).runs(["figure 1"], ["snli"])
        assert {run.settings["overrides"]["trainer.patience"] for run in runs} == {7}
        limits = {run.size: run.config["trainer"]["num_epochs"] for run in runs}
        assert limits == {None: 200, 180: 2000, 1800: 2000}

    def test_a_transformer_replaces_the_bilm_without_its_checkpoint(self, environment, tmp_path):
        runs = open_plan(tmp_path).runs([TRANSFORMER])
        assert {(run.task, run.variant) for run in runs} == {
            ("ner", "input-transformer"),
            ("sst", "both-transformer"),
            ("snli", "both-transformer"),
        }
        assert {run.seed for run in runs} == {1, 2, 3}
        for run in runs:
            transformer = {"type": "transformer", "model_name": "data/minilm", "pooling": "avg"}
            assert run.config["model"]["bilm"] == transformer

    def test_table_1_comes_first_and_each_run_once(self, environment, tmp_path):
        runs = open_plan(tmp_path).runs(["table 2", "table 1", "figure 1"], ["snli", "sst"])
        names = [run.name for run in runs]
        assert len(names) == len(set(names))
        firsts = {"snli/baseline/1", "snli/both/1", "sst/baseline/1", "sst/both/1"}
        assert set(names[:4]) == firsts
        assert {"snli/both/1-180", "snli/both/3-1800", "snli/both/5"} <= set(names)
        assert "snli/both/4-180" not in names


class TestRun:
    def test_its_config_is_the_published_one_with_the_settings_of_the_plan(
        self, environment, tmp_path
    ):
        changes = {"ner": {"overrides": {"trainer.num_epochs": 3}}}
        plan = Plan("paper", results=tmp_path, changes=changes, seeds=1)
        (run,) = plan.runs(["figure 2"], ["ner"])
        published = Params.from_file(str(TRAINING_CONFIGS / "ner_elmo.jsonnet")).as_dict(quiet=True)
        published["trainer"]["num_epochs"] = 3
        seeds = {"random_seed": 1, "numpy_seed": 1, "pytorch_seed": 1}
        assert run.config == {**published, "evaluate_on_test": True, **seeds}
        assert run.inputs["data/ner/train.txt"] == sha256(FIXTURES / "ner" / "train.txt")
        assert run.inputs["biLM/weights.hdf5"] == sha256(TINY_BILM / "weights.hdf5")

    def test_its_digest_depends_on_the_config_and_not_on_folders(self, environment, tmp_path):
        copy = tmp_path / "copy"
        copy.symlink_to(FIXTURES)
        runs = open_plan(tmp_path, data=str(FIXTURES)).runs(["table 1"], ["ner"])
        runs_of_copy = open_plan(tmp_path, data=str(copy)).runs(["table 1"], ["ner"])
        digests = [run.digest for run in runs]
        assert [run.digest for run in runs_of_copy] == digests
        assert [run.inputs for run in runs_of_copy] == [run.inputs for run in runs]
        assert len(set(digests)) == 2
        changes = {"": {"overrides": {"trainer.num_epochs": 3}}}
        changed_runs = open_plan(tmp_path, changes=changes).runs(["table 1"], ["ner"])
        assert not set(digests) & {run.digest for run in changed_runs}

    def test_sizes_at_least_as_large_as_the_training_set_are_left_out(self, environment, tmp_path):
        runs = open_plan(tmp_path, data=str(FIXTURES)).runs(["figure 1"], ["snli"])
        total = 0
        for line in (FIXTURES / "snli" / "train.jsonl").read_text("utf-8").splitlines():
            total += json.loads(line)["gold_label"] != "-"
        smaller = {size for size in (180, 1800) if size < total}
        assert {run.training_size for run in runs} == {*smaller, total}


class TestVariants:
    def test_tables_share_runs(self):
        assert variants_of("table 2", "snli")["both"] == variants_of("table 1", "snli")["both"]
        assert "input-l2-1" in variants_of("table 2", "srl")
        assert "both-l2-0.001" in variants_of("table 2", "squad")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
