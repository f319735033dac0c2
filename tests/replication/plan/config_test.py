"""Tests of the evaluated config of a variant."""

import pytest

from elmo_tasks.environment import config_variables
from elmo_tasks.replication.plan.config import TEMPLATES, evaluated_config

VARIABLES = config_variables({})


class TestEvaluatedConfig:
    def test_arguments_and_overrides_are_in_it(self):
        """Oracle: the config of the template without them."""
        template = TEMPLATES / "snli.libsonnet"
        plain = evaluated_config(template, {}, {}, VARIABLES)
        other = evaluated_config(template, {"hidden": 7}, {"trainer.num_epochs": 2}, VARIABLES)
        assert (plain["model"]["encoder"]["hidden_size"], other["model"]["encoder"]["hidden_size"]) == (300, 7)
        assert other["trainer"] == {**plain["trainer"], "num_epochs": 2}

    @pytest.mark.parametrize(
        ("arguments", "overrides", "message"),
        [
            ({"hiden": 7}, {}, "snli.libsonnet cannot be called with.*hiden"),
            ({"a=1, b": 7}, {}, "must be names"),
            ({}, {"trainr.num_epochs": 2}, "snli must name keys that they have.*trainr"),
        ],
    )
    def test_what_the_template_does_not_know_is_named(self, arguments, overrides, message):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=message):
            evaluated_config(TEMPLATES / "snli.libsonnet", arguments, overrides, VARIABLES)
