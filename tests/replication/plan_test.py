import hashlib
import json

import pytest
from allennlp.common import Params

from elmo_tasks.replication.paper import TABLES, variants_of
from elmo_tasks.replication.plan import Plan
from elmo_tasks.replication.train import sort_out, word_senses
from tests.paths import CHECKOUT, FIXTURES, TINY_BILM, TRAINING_CONFIGS


def open_plan(tmp_path, **arguments):
    return Plan("open", **{"data": "data", "results": tmp_path, **arguments})


class TestOpenPlan:
    @pytest.mark.weekly
    def test_all_its_runs_are_published(self, environment):
        plan = open_plan(CHECKOUT / "results" / "open", bilm="small-open")
        scores, missing, problems = sort_out(plan.runs(list(TABLES)))
        assert len(scores) == 122 and not missing and not problems
        assert word_senses(plan) is not None

    def test_table_1_comes_first_and_each_run_once(self, environment, tmp_path):
        runs = open_plan(tmp_path).runs(["table 2", "table 1", "figure 1"], ["snli", "sst"])
        names = [run.name for run in runs]
        assert len(names) == len(set(names))
        assert set(names[:4]) == {f"{task}/{variant}/1" for task in ("snli", "sst") for variant in ("baseline", "both")}
        assert {"snli/both/1-180", "snli/both/3-1800", "snli/both/5"} <= set(names) and "snli/both/4-180" not in names


class TestRun:
    def test_its_config_is_the_published_one_with_the_settings_of_the_plan(self, environment, tmp_path):
        changes = {"ner": {"overrides": {"trainer.num_epochs": 3}}}
        (run,) = Plan("paper", results=tmp_path, changes=changes, seeds=1).runs(["figure 2"], ["ner"])
        published = Params.from_file(str(TRAINING_CONFIGS / "ner_elmo.jsonnet")).as_dict(quiet=True)
        published["trainer"]["num_epochs"] = 3
        seeds = {"random_seed": 1, "numpy_seed": 1, "pytorch_seed": 1}
        assert run.config == {**published, "evaluate_on_test": True, **seeds}
        assert run.inputs["data/ner/train.txt"] == sha256(FIXTURES / "ner" / "train.txt")
        assert run.inputs["biLM/weights.hdf5"] == sha256(TINY_BILM / "weights.hdf5")

    def test_its_digest_depends_on_the_config_and_not_on_folders(self, environment, tmp_path):
        (tmp_path / "copy").symlink_to(FIXTURES)
        here, there = (
            open_plan(tmp_path, data=str(data)).runs(["table 1"], ["ner"]) for data in (FIXTURES, tmp_path / "copy")
        )
        assert [run.digest for run in here] == [run.digest for run in there]
        assert [run.inputs for run in here] == [run.inputs for run in there]
        assert len({run.digest for run in here}) == 2
        changed = open_plan(tmp_path, changes={"": {"overrides": {"trainer.num_epochs": 3}}})
        assert not {run.digest for run in here} & {run.digest for run in changed.runs(["table 1"], ["ner"])}

    def test_sizes_at_least_as_large_as_the_training_set_are_left_out(self, environment, tmp_path):
        runs = open_plan(tmp_path, data=str(FIXTURES)).runs(["figure 1"], ["snli"])
        total = sum(json.loads(line)["gold_label"] != "-" for line in (FIXTURES / "snli" / "train.jsonl").open())
        assert {run.training_size for run in runs} == {size for size in (180, 1800) if size < total} | {total}


class TestVariants:
    def test_tables_share_runs(self):
        assert variants_of("table 2", "snli")["both"] == variants_of("table 1", "snli")["both"]
        assert "input-l2-1" in variants_of("table 2", "srl") and "both-l2-0.001" in variants_of("table 2", "squad")


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
