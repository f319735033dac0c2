"""Tests of the variants of a template."""

import pytest

from elmo_tasks.replication import TASKS, Variant


class TestVariant:
    def test_what_it_is_called_with_and_its_name(self):
        """Oracle: by hand."""
        variants = [
            Variant.baseline(),
            Variant.elmo(TASKS["ner"]),
            Variant.elmo(TASKS["snli"], top=True),
            Variant.elmo(TASKS["squad"], l2=1.0),
            Variant.of_layer(1),
        ]
        assert [(variant.name, variant.arguments) for variant in variants] == [
            ("baseline", {}),
            ("input", {"elmo_at": ["input"]}),
            ("both-top", {"elmo_at": ["input", "output"], "elmo_layers": "top"}),
            ("both-l2-1", {"elmo_at": ["input", "output"], "elmo_l2": 1.0}),
            ("layer-1", {"layer": 1}),
        ]

    def test_a_lambda_that_the_template_has_anyway_is_no_other_variant(self):
        """Oracle: the paper's lambda is 0.001 for SNLI, and 0 for SQuAD."""
        assert Variant.elmo(TASKS["snli"], l2=0.001) == Variant.elmo(TASKS["snli"])
        assert Variant.elmo(TASKS["squad"], l2=0.001).name == "both-l2-0.001"

    def test_a_layer_alone_has_no_lambda_and_no_place(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="layer 1 alone must have nothing else"):
            Variant(("input",), layer=1)
