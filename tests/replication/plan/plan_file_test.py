"""Tests of the plan of a replication."""

import json

import pytest

from elmo_tasks.replication import Exhibit, PlanFile
from tests.paths import TRAINING_CONFIGS

TASK = {"task": "ner", "data": "names", "seeds": {"table 1": 2}}


def write(folder, *tasks, **changes):
    path = folder / "plan.jsonnet"
    content = {"format": 1, "bilm": "small-open", "glove": "glove.100d.txt", "tasks": list(tasks), **changes}
    path.write_text(json.dumps(content))
    return str(path)


class TestPlanFile:
    def test_the_one_that_ships_has_all_six_tasks(self):
        """Oracle: the tables that the open replication is to have, and their tasks and least seeds, by hand."""
        plan = PlanFile.from_file("open")
        assert plan.path == TRAINING_CONFIGS / "open.jsonnet"
        seeds = {task.task: task.seeds for task in plan.tasks}
        least = {"ner": 5, "snli": 5, "sst": 5, "srl": 3, "squad": 3, "coref": 3}
        assert {task: of[Exhibit.TABLE_1] for task, of in seeds.items() if Exhibit.TABLE_1 in of} == least
        assert {task: of[Exhibit.TABLE_2] for task, of in seeds.items() if Exhibit.TABLE_2 in of} == {
            **dict.fromkeys(("snli", "sst", "srl"), 3),
            "squad": 1,
        }
        assert {task: of[Exhibit.FIGURE_1] for task, of in seeds.items() if Exhibit.FIGURE_1 in of} == {
            "snli": 3,
            "srl": 3,
        }
        assert plan.exhibits == list(Exhibit)

    def test_a_bilm_may_lie_next_to_the_plan(self, tmp_path):
        """Oracle: the folder, wherever the command is called; a name stays one."""
        for name in ("mine", "small-open"):
            (tmp_path / name).mkdir()
        assert PlanFile.from_file(write(tmp_path, TASK, bilm="mine")).bilm == str(tmp_path / "mine")
        assert PlanFile.from_file(write(tmp_path, TASK)).bilm == "small-open"

    def test_table_1_grows_first_seed_by_seed(self, tmp_path):
        """Oracle: the order by hand; a run that two tables have is there once."""
        ner = {**TASK, "seeds": {"table 1": 3}}
        snli = {"task": "snli", "data": "pairs", "seeds": {"table 1": 2, "table 3": 1, "figure 1": 1}, "sizes": [9]}
        plan = PlanFile.from_file(write(tmp_path, ner, snli))
        runs = plan.runs(plan.exhibits, ["ner", "snli"])
        assert [(run.task, run.variant.name, run.seed, run.size) for run in runs] == [
            *(("ner", variant, 1, None) for variant in ("baseline", "input")),
            *(("snli", variant, 1, None) for variant in ("baseline", "both")),
            *(("ner", variant, 2, None) for variant in ("baseline", "input")),
            *(("snli", variant, 2, None) for variant in ("baseline", "both")),
            *(("snli", variant, 1, None) for variant in ("input", "output")),
            *(("snli", variant, 1, 9) for variant in ("baseline", "both")),
            *(("ner", variant, 3, None) for variant in ("baseline", "input")),
        ]
        assert {run.task for run in plan.runs([Exhibit.TABLE_1], ["ner"])} == {"ner"}
        assert {run.seed for run in plan.runs([Exhibit.TABLE_3], ["ner", "snli"])} == {1}

    @pytest.mark.parametrize(
        ("task", "message"),
        [
            ({**TASK, "task": "nre"}, "'task' must be one of .*'nre'"),
            (
                {**TASK, "seeds": {"table 3": 1}},
                "'seeds' of ner must name some of table 1, figure 2, but names 'table 3'",
            ),
            ({**TASK, "seeds": {"table 1": 0}}, "at least 1, but table 1 has 0"),
            ({**TASK, "sizes": [10]}, "'sizes' are for figure 1"),
            ({**TASK, "sizes": ["10%"]}, "numbers of at least 1, but one is '10%'"),
            ({**TASK, "seed": 1}, "one is 'seed'"),
            ({"task": "ner", "data": "names"}, "'seeds' must be an object, but is None"),
            ([], "must be an object"),
        ],
    )
    def test_a_task_that_is_not_clear_is_named(self, tmp_path, task, message):
        """Oracle: the messages, with the file."""
        with pytest.raises(ValueError, match=rf"plan\.jsonnet must be a plan, but: .*{message}"):
            PlanFile.from_file(write(tmp_path, task))

    def test_a_plan_of_another_form_is_refused(self, tmp_path):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match="'format' must be 1, but is 2"):
            PlanFile.from_file(write(tmp_path, TASK, format=2))
        with pytest.raises(ValueError, match="'measurements' must name some of table 5, table 7, but names 'table 6'"):
            PlanFile.from_file(write(tmp_path, TASK, measurements=["table 5", "table 6"]))
        with pytest.raises(ValueError, match="ner is there twice"):
            PlanFile.from_file(write(tmp_path, TASK, TASK))
        with pytest.raises(FileNotFoundError, match=r"a plan must be `open`.*'closed'"):
            PlanFile.from_file("closed")
