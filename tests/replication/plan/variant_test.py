"""Tests of the variants of a template."""

import json

import pytest

from elmo_tasks.bilm.model_files import read_any_options
from elmo_tasks.replication import TASKS, Variant
from tests.bilm.many_langs.models import write_model
from tests.paths import TINY_BILM


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

    def test_a_transformer_is_at_the_places_of_elmo(self):
        """Oracle: by hand."""
        variant = Variant.elmo(TASKS["snli"], contextual=("bert", "bert-base-cased"))
        assert variant.name == "both-bert"
        assert variant.arguments == {"elmo_at": ["input", "output"], "contextual": "bert-base-cased"}

    def test_another_bilm_is_at_the_places_of_elmo(self, tmp_path):
        """Oracle: the files, of both formats."""
        folder = write_model(tmp_path / "model")
        ours, of_many_langs = (Variant.elmo(TASKS["ner"], contextual=("x", str(it))) for it in (TINY_BILM, folder))
        options = json.loads((TINY_BILM / "options.json").read_text())
        assert ours.arguments["bilm"] == {"options": options, "pretrained_file": str(TINY_BILM / "weights.hdf5")}
        assert of_many_langs.arguments["bilm"] == {
            "options": read_any_options(folder / "config.json").to_dict(),
            "pretrained_file": str(folder / "encoder.pkl"),
        }

    @pytest.mark.parametrize("name", ["top", "l2", "a-b", "", "a/b"])
    def test_a_transformer_with_the_name_of_another_variant_is_an_error(self, name):
        """Oracle: the message has the name."""
        with pytest.raises(ValueError, match=f"other than top and l2, but is named '{name}'"):
            Variant.elmo(TASKS["snli"], contextual=(name, "bert-base-cased"))

    def test_a_lambda_that_the_template_has_anyway_is_no_other_variant(self):
        """Oracle: the paper's lambda is 0.001 for SNLI, and 0 for SQuAD."""
        assert Variant.elmo(TASKS["snli"], l2=0.001) == Variant.elmo(TASKS["snli"])
        assert Variant.elmo(TASKS["squad"], l2=0.001).name == "both-l2-0.001"

    def test_a_layer_alone_has_no_lambda_and_no_place(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="layer 1 alone must have nothing else"):
            Variant(("input",), layer=1)
