"""Tests that the code computes what it did when the runs of the plan were trained."""

import pytest

from elmo_tasks.replication import TASKS
from elmo_tasks.replication.plan.computation import known_losses
from elmo_tasks.replication.train.three_steps import changed, kinds_of, losses


class TestLosses:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", TASKS)
    def test_the_code_computes_what_it_did(self, environment, name):
        """
        Oracle: the losses in `fixtures/computation.json`. If this fails, scores of earlier runs cannot be compared with
        scores of this code: the message says what to do.
        """
        task = TASKS[name]
        problems = [changed(task, kind, losses(task, kind)) for kind in kinds_of(task)]
        assert problems == [None] * len(problems)


class TestChanged:
    def test_the_last_digit_may_differ_and_no_other(self):
        """Oracle: the relative tolerance, by hand; the message has the command."""
        task, known = TASKS["ner"], known_losses()["ner"]["elmo"]
        assert changed(task, "elmo", [loss * 1.0009 for loss in known]) is None
        assert "run `make computation`" in changed(task, "elmo", [known[0] * 1.002, *known[1:]])
        assert changed(task, "elmo", known[:2]) is not None
        assert changed(task, "elmo", [float("nan"), *known[1:]]) is not None
