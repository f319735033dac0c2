"""The list of what untrusted archives may name."""

import json
from pathlib import Path
from typing import Any

import pytest
from allennlp.common import FromParams, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.common.plugins import import_plugins

from allennlp_today.trust.allowed import harmless_tables, listed
from allennlp_today.trust.walk import harmless_config

OTHER_TABLES = {"arguments", "FromParams", "machine", "numbers", "old_arguments", "refused"}
OF_ALLENNLP = ("allennlp.", "allennlp_models.", "torch.")
CONFIG: dict[str, Any] = {
    "dataset_reader": {"type": "sequence_tagging"},
    "model": {
        "type": "simple_tagger",
        "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2}}},
        "encoder": {"type": "pass_through", "input_dim": 2},
    },
}


@pytest.fixture(scope="module", autouse=True)
def plugins() -> None:
    import_plugins()


class TestLists:
    def test_each_class_of_allennlp_is_listed_or_refused(self):
        def is_refused(base: str, name: str) -> bool:
            return bool({name, "*"} & listed()["refused"].get(base, {}).keys())

        undecided = [
            f"{base.__name__} {name}"
            for base, names in Registrable._registry.items()
            for name, (cls, _) in names.items()
            if cls.__module__.startswith(OF_ALLENNLP)
            and (name in listed().get(base.__name__, {})) == is_refused(base.__name__, name)
        ]
        assert not undecided, "expected one of both in harmless.toml"

    def test_each_listed_class_exists(self):
        registry: dict[str, Any] = {base.__name__: names for base, names in Registrable._registry.items()}
        for tables in harmless_tables().values():
            for table in tables:
                for base in table.keys() & registry.keys():
                    assert table[base].keys() <= registry[base].keys()
                unknown = table.keys() - registry.keys() - OTHER_TABLES
                assert not unknown

    def test_no_listed_class_builds_itself(self):
        """The walk reads annotations, which a `from_params` of a class may ignore."""
        for base, names in Registrable._registry.items():
            for name in listed().get(base.__name__, {}):
                method = getattr(names[name][0], "from_params", None)
                assert method is None or method.__func__ is FromParams.from_params.__func__, name


def transformer(**arguments: Any) -> dict[str, Any]:
    return {"tokens": {"type": "pretrained_transformer", "model_name": "org/name", **arguments}}


class TestCheckConfig:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"data_loader": {"batch_sampler": {"type": "bucket", "batch_size": 2, "sorting_keys": ["tokens"]}}},
            {"trainer": {"type": "my_project.Trainer"}, "train_data_path": "/data/train.txt"},
            {"vocabulary": {"type": "from_instances", "pretrained_files": {"tokens": "http://x"}}},
            {"evaluation": {"type": "simple"}},
            {"dataset_reader": {"type": "sequence_tagging", "token_indexers": {"tokens": "single_id"}}},
            {"dataset_reader": {"type": "sequence_tagging", "token_indexers": transformer(max_length=9)}},
            {
                "dataset_reader": {
                    "type": "sequence_tagging",
                    "token_indexers": transformer(tokenizer_kwargs={"pad_token": "x", "use_fast": False}),
                }
            },
        ],
    )
    def test_configs_of_trainings_are_harmless(self, tmp_path, changes):
        harmless_config({**CONFIG, **changes}, tmp_path)

    def test_files_of_trainings_are_not_read(self, tmp_path):
        """AllenNLP removes them before it builds a model."""
        config = json.loads(json.dumps(CONFIG))
        embedder = config["model"]["text_field_embedder"]["token_embedders"]["tokens"]
        embedder["pretrained_file"] = "http://x/glove.txt"
        config["model"]["initializer"] = {"regexes": [["", {"type": "pretrained", "weights_file_path": "x"}]]}
        harmless_config(config, tmp_path)

    def test_files_of_the_archive_may_be_named(self, tmp_path: Path):
        reader = {"type": "sequence_tagging", "serialization_dir": str(tmp_path / "x")}
        harmless_config({**CONFIG, "dataset_reader": reader}, tmp_path)
        with pytest.raises(ConfigurationError, match=r"file in the archive.*dataset_reader\.serialization_dir"):
            harmless_config({**CONFIG, "dataset_reader": reader}, tmp_path / "y")


def test_arguments_of_earlier_versions_are_accepted(tmp_path):
    """AllenNLP's published configs have them, such as ner-elmo's and bidaf's."""
    for reader in (
        {"type": "conll2003", "coding_scheme": "BIOUL"},
        {"type": "conll2000", "coding_scheme": "BIOUL"},
        {"type": "squad", "skip_invalid_examples": True},
        {"type": "sequence_tagging", "lazy": True},
    ):
        harmless_config({"dataset_reader": reader}, tmp_path)
    with pytest.raises(ConfigurationError, match="coding_scheme"):
        harmless_config({"dataset_reader": {"type": "conll2003", "coding_scheme": "/etc/passwd"}}, tmp_path)
