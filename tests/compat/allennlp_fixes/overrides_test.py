"""Tests of elmo_tasks.compat.allennlp_fixes.overrides."""

import json

import pytest
from allennlp.common import Params, params
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides

from tests.paths import TRAINING_CONFIGS

# All but the plan of a replication.
CONFIGS = sorted(path.name for path in TRAINING_CONFIGS.glob("*.jsonnet") if path.name != "open.jsonnet")


def override(name: str, **overrides: object) -> Params:
    return Params.from_file(
        TRAINING_CONFIGS / name, json.dumps({k.replace("__", "."): v for k, v in overrides.items()})
    )


class TestSayWhatOverridesMustBe:
    @pytest.mark.parametrize(
        "given", ["{trainer.num_epochs: 1}", "trainer.num_epochs=1", "[1]", "3", '{"a": std.extVar("none")}']
    )
    def test_what_is_no_object_is_an_error(self, given):
        """Oracle: the message, with what was given and an example."""
        with pytest.raises(
            ConfigurationError, match=r"--overrides must be a JSON object .*\"trainer.num_epochs\": 1"
        ) as error:
            params.parse_overrides(given)
        assert repr(given) in str(error.value)

    def test_objects_are_as_before(self):
        """Oracle: by hand, with Jsonnet's sums, and the default of no overrides."""
        assert params.parse_overrides('{"a.b": 1 + 1, c: {d: 2}}') == {"a.b": 2, "c": {"d": 2}}
        assert params.parse_overrides("") == {}


class TestRefuseUnknownOverrides:
    @pytest.mark.parametrize("name", CONFIGS)
    def test_a_mistyped_setting_of_the_trainer_is_an_error(self, environment, name):
        """Oracle: the message, with the key and the nearest name."""
        with pytest.raises(ConfigurationError, match=r"'trainer\.num_epoch' must.*did you mean 'num_epochs'\?"):
            override(name, trainer__num_epoch=1)

    @pytest.mark.parametrize(
        ("key", "nearest"),
        [
            ("trainr.num_epochs", "trainer"),
            ("random_sed", "random_seed"),
            ("evaluate_on_tests", "evaluate_on_test"),
            ("trainer.optimizer.lrr", "lr"),
            ("data_loader.batch_sampler.batchsize", "batch_size"),
            ("dataset_reader.tokenindexers", "token_indexers"),
            ("model.dropuot", "dropout"),
        ],
    )
    def test_the_nearest_name_is_said(self, environment, key, nearest):
        """Oracle: the message, at every depth of a config."""
        with pytest.raises(ConfigurationError, match=f"did you mean '{nearest}'"):
            override("ner_elmo.jsonnet", **{key.replace(".", "__"): 1})

    @pytest.mark.parametrize("name", CONFIGS)
    def test_settings_that_are_there_may_be_changed(self, environment, name):
        """Oracle: every place of every published config, overridden with itself."""
        config = Params.from_file(TRAINING_CONFIGS / name).as_dict(quiet=True)

        def places(node: object, prefix: str) -> list[str]:
            children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
            here = [f"{prefix}{key}" for key, _ in children if "." not in str(key)]
            return here + [
                place
                for key, child in (node.items() if isinstance(node, dict) else [])
                if "." not in key
                for place in places(child, f"{prefix}{key}.")
                if isinstance(child, dict)
            ]

        for place in places(config, ""):
            value = config
            for part in place.split("."):
                value = value[part]
            assert with_overrides(config, {place: value}) == config

    @pytest.mark.parametrize(
        ("name", "key", "value"),
        [
            ("ner_elmo.jsonnet", "random_seed", 5),
            ("ner_elmo.jsonnet", "evaluate_on_test", True),
            ("ner_elmo.jsonnet", "distributed", {"cuda_devices": [0, 1]}),
            ("ner_elmo.jsonnet", "trainer.num_gradient_accumulation_steps", 2),
            ("ner_elmo.jsonnet", "trainer.use_amp", True),
            ("ner_elmo.jsonnet", "trainer.run_confidence_checks", False),
            ("ner_elmo.jsonnet", "trainer.cuda_device", -1),
            ("ner_elmo.jsonnet", "data_loader.num_workers", 2),
            ("ner_elmo.jsonnet", "data_loader.max_instances_in_memory", 100),
            ("ner_elmo.jsonnet", "dataset_reader.max_instances", 10),
            ("ner_elmo.jsonnet", "vocabulary.min_count", {"tokens": 2}),
            ("ner_elmo.jsonnet", "model.bilm.precision", "bf16"),
            ("coref.jsonnet", "dataset_reader.remove_singleton_clusters", True),
            ("bilm.jsonnet", "trainer.learning_rate_scheduler", None),
        ],
    )
    def test_settings_that_a_class_has_may_be_added(self, environment, name, key, value):
        """Oracle: AllenNLP's documentation and our classes' signatures: the config with the setting."""
        found = override(name, **{key.replace(".", "__"): value}).as_dict(quiet=True)
        for part in key.split("."):
            found = found[part]
        assert found == value

    def test_what_belongs_to_no_known_class_is_let_through(self):
        """Oracle: the config with the key, as AllenNLP has it."""
        config = {"mine": {"a": 1}, "model": {"type": "unknown_to_the_registry"}}
        assert with_overrides(config, {"mine.b": 2})["mine"] == {"a": 1, "b": 2}
        assert with_overrides(config, {"model.b": 2})["model"]["b"] == 2

    def test_a_file_that_is_no_training_is_let_through(self):
        """Oracle: the config with the key, as AllenNLP has it."""
        assert with_overrides({"old": 1, "m": 2}, {"new": 1}) == {"old": 1, "m": 2, "new": 1}
