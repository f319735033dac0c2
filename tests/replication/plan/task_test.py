"""Tests of the tasks of tables and figures."""

import json

import pytest

from elmo_tasks.environment import config_variables, evaluate_file
from elmo_tasks.replication import SIX_TASKS, TASKS
from elmo_tasks.replication.plan.config import TEMPLATES, evaluated_config

VARIABLES = config_variables({})


class TestTask:
    @pytest.mark.parametrize("task", SIX_TASKS.values(), ids=list(SIX_TASKS))
    def test_places_lambda_and_metric_are_those_of_the_published_config(self, task):
        """Oracle: the config `<task>_elmo.jsonnet`, and the validation metric of its trainer."""
        template = TEMPLATES / f"{task.name}.libsonnet"
        called = evaluated_config(template, {"elmo_at": list(task.places), "elmo_l2": task.l2}, {}, VARIABLES)
        published = TEMPLATES.parent / f"{task.name}_elmo.jsonnet"

        assert called == json.loads(evaluate_file(str(published), VARIABLES))
        assert called["trainer"]["validation_metric"] == f"+{task.metric}"

    def test_the_metric_of_parts_of_speech_is_that_of_its_trainer(self):
        """Oracle: the template."""
        config = evaluated_config(TEMPLATES / "pos.libsonnet", {}, {}, VARIABLES)
        assert config["trainer"]["validation_metric"] == f"+{TASKS['pos'].metric}"

    def test_only_squad_is_scored_on_its_dev_set(self):
        """Oracle: the test set of SQuAD is not public."""
        assert [task.name for task in TASKS.values() if task.split == "dev"] == ["squad"]
