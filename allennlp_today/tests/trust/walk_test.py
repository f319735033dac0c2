"""The list of what untrusted archives may name."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Optional, Union, get_origin

import pytest
from allennlp.common import FromParams, Params, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.common.from_params import infer_constructor_params
from allennlp.common.plugins import import_plugins
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder

from allennlp_today.trust.allowed import harmless_tables, harmless_toml
from allennlp_today.trust.walk import harmless_config

OTHER_TABLES = {"arguments", "FromParams", "machine", "numbers", "old_arguments", "refused"}
OF_ALLENNLP = ("allennlp.", "allennlp_models.", "torch.")
CONFIG: dict[str, Any] = {
    "dataset_reader": {"type": "sequence_tagging"},
    "model": {
        "type": "simple_tagger",
        "text_field_embedder": {
            "token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2}}
        },
        "encoder": {"type": "pass_through", "input_dim": 2},
    },
}


@pytest.fixture(scope="module", autouse=True)
def plugins() -> None:
    import_plugins()


class TestLists:
    def test_each_class_of_allennlp_is_listed_or_refused(self):
        undecided = []
        for base, names in Registrable._registry.items():
            accepted = harmless_toml().get(base.__name__, {}).keys()
            refused = harmless_toml()["refused"].get(base.__name__, {}).keys()
            for name, (cls, _) in names.items():
                is_refused = name in refused or "*" in refused
                if cls.__module__.startswith(OF_ALLENNLP) and (name in accepted) == is_refused:
                    undecided.append(f"{base.__name__} {name}")
        assert not undecided, "expected one of both in harmless.toml"

    def test_each_listed_class_exists(self):
        registry: dict[str, Any] = {
            base.__name__: names for base, names in Registrable._registry.items()
        }
        for tables in harmless_tables().values():
            for table in tables:
                for base in table.keys() & registry.keys():
                    assert table[base].keys() <= registry[base].keys()
                unknown = table.keys() - registry.keys() - OTHER_TABLES
                assert not unknown

    def test_no_listed_class_builds_itself(self):
        """The walk reads annotations, which a `from_params` of a class may ignore."""
        for base, names in Registrable._registry.items():
            for name in harmless_toml().get(base.__name__, {}):
                method = getattr(names[name][0], "from_params", None)
                assert method is None or method.__func__ is FromParams.from_params.__func__, name


def listed_classes() -> Iterator[tuple[str, type, Any, Any]]:
    """
    The name, the class, its constructor and its entry for each class that AllenNLP's list has.
    """
    for base, names in Registrable._registry.items():
        for name, entry in harmless_toml().get(base.__name__, {}).items():
            cls, constructor = names[name]
            method = getattr(cls, constructor) if constructor else cls.__init__
            yield f"{base.__name__} {name}", cls, method, entry


class TestDefaults:
    """A default is an argument: that of the constituency parser compiles a program and runs it."""

    def test_those_with_strings_are_listed_or_null(self):
        # The last is a method of the model, by which it makes its outputs readable.
        decided = {
            *harmless_toml()["arguments"],
            *harmless_toml()["machine"],
            "postprocessor_fn_name",
        }
        unlisted = []
        for name, cls, constructor, entry in listed_classes():
            null = entry.get("without", ()) if isinstance(entry, dict) else ()
            for parameter in infer_constructor_params(cls, constructor).values():
                is_literal = get_origin(parameter.annotation) is Literal
                is_word = isinstance(parameter.default, str) and not is_literal
                if is_word and parameter.name not in decided | set(null):
                    unlisted.append(f"{name}: {parameter.name} = {parameter.default!r}")
        assert not unlisted

    @pytest.mark.parametrize(
        ("name", "argument"),
        [("constituency_parser", "evalb_directory_path"), ("srl", "srl_eval_path")],
    )
    def test_those_that_run_a_program_are_null(self, tmp_path, name, argument):
        built = harmless_config({**CONFIG, "model": {"type": name}}, tmp_path)
        assert built["model"][argument] is None
        with pytest.raises(ConfigurationError, match=rf"listed argument, got {argument}"):
            harmless_config({**CONFIG, "model": {"type": name, argument: "x; touch y"}}, tmp_path)

    def test_roles_are_evaluated_without_the_program(self, tmp_path):
        model = {
            "type": "srl",
            "text_field_embedder": CONFIG["model"]["text_field_embedder"],
            "encoder": {"type": "pass_through", "input_dim": 4},
            "binary_feature_dim": 2,
            "ignore_span_metric": False,
        }
        built = harmless_config({**CONFIG, "model": model}, tmp_path)
        tagger = Model.from_params(Params(built["model"]), vocab=Vocabulary())
        assert tagger.span_metric is None and tagger.get_metrics() == {}


class TestNumbers:
    def test_all_that_describe_no_machine_are_listed(self):
        """`numbers` was made from the constructors, and read."""
        numbers = set(harmless_toml()["numbers"])
        machine = set(harmless_toml()["machine"])
        unlisted = []
        for name, cls, constructor, _ in listed_classes():
            for parameter in infer_constructor_params(cls, constructor).values():
                is_number = parameter.annotation in (int, float, bool)
                if is_number and parameter.name not in numbers | machine:
                    unlisted.append(f"{name}: {parameter.name}")
        assert not unlisted
        assert numbers.isdisjoint(machine)

    def test_others_are_refused(self, tmp_path, monkeypatch):
        mine: dict[str, Any] = {"Model": {"walk_test_model": "tensors"}, "numbers": ["size"]}
        monkeypatch.setattr(sys.modules[__name__], "HARMLESS", mine, raising=False)
        config = {**CONFIG, "model": {"type": "walk_test_model", "size": 3, "dropout": 0.5}}
        harmless_config(config, tmp_path)
        config["model"]["cache_bytes"] = 1
        with pytest.raises(ConfigurationError, match="listed argument, got cache_bytes = 1: model"):
            harmless_config(config, tmp_path)
        del mine["numbers"]
        harmless_config(config, tmp_path)


@Model.register("walk_test_model", exist_ok=True)
class Mine(Model):
    def __init__(
        self,
        vocab: Vocabulary,
        encoder: Optional[Seq2SeqEncoder] = None,
        mode: str = "mean",
        size: int = 1,
        dropout: float = 0.0,
        cache_bytes: int = 0,
        options: Optional[dict[str, Any]] = None,
        anything: Any = None,
        named: Optional[dict[str, int]] = None,
        encoder_or_name: Union[str, Seq2SeqEncoder] = "",
    ) -> None:
        super().__init__(vocab)


@Model.register("walk_test_builder", exist_ok=True)
class Builder(Model):
    @classmethod
    def from_params(cls, params: Params, **extras: Any) -> "Builder":
        raise NotImplementedError


class TestClassesOfTheUser:
    """They run already, and nobody has listed what they do with their arguments."""

    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {
                "mode": "B-PER",
                "size": 3,
                "dropout": 0.5,
                "anything": ["[CLS]", "@@UNKNOWN@@", "not entailment", ""],
            },
            {"options": {"a": {"b": [1, None, "c"]}}, "cache_bytes": 1},
            {"anything": "{archive}/words.txt"},
            {"encoder": {"type": "pass_through", "input_dim": 2}},
            {"encoder_or_name": {"type": "pass_through", "input_dim": 2}, "named": {"a": 1}},
            {"encoder_or_name": "pass_through"},
        ],
    )
    def test_words_numbers_and_files_of_the_archive_are_accepted(self, tmp_path, arguments):
        text = json.dumps({"type": "walk_test_model", **arguments})
        model = json.loads(text.replace("{archive}", str(tmp_path)))
        assert harmless_config({**CONFIG, "model": model}, tmp_path)["model"] == model

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ({"mode": "/etc/passwd"}, "a word or a file in the archive"),
            ({"mode": "secret.txt"}, "a word or a file in the archive"),
            ({"mode": "org/name"}, "a word or a file in the archive"),
            ({"anything": ["a", "http://x"]}, "a word or a file in the archive"),
            ({"anything": ".."}, "a word or a file in the archive"),
            ({"anything": "~"}, "a word or a file in the archive"),
            ({"anything": "a\nb"}, "a word or a file in the archive"),
            ({"options": {"a": {"b": ["..\\x"]}}}, "a word or a file in the archive"),
            ({"options": {"../x": 1}}, "a word or a file in the archive"),
            ({"named": {"/etc/passwd": 1}}, "a word or a file in the archive"),
            ({"encoder_or_name": {"type": "bart_encoder"}}, "a listed Seq2SeqEncoder"),
            ({"options": {"type": "subprocess.Popen"}}, "no class"),
            ({"anything": [{"inner": {"type": "x"}}]}, "no class"),
            ({"mode": 3}, "expected a string"),
            ({"encoder": {"type": "bart_encoder"}}, "a listed Seq2SeqEncoder"),
            ({"encoder": {"type": "os.system"}}, "a registered Seq2SeqEncoder"),
            ({"unknown": "x"}, "arguments of Mine"),
            ({"type": "walk_test_builder"}, "a listed Model"),
            ({"type": "from_archive"}, "a listed Model"),
            ({"type": f"{__name__}.Mine"}, "a registered Model"),
        ],
    )
    def test_places_and_other_classes_are_not(self, tmp_path, monkeypatch, arguments, expected):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "secret.txt").touch()
        with pytest.raises(ConfigurationError, match=expected):
            harmless_config(
                {**CONFIG, "model": {"type": "walk_test_model", **arguments}}, tmp_path / "archive"
            )


class TestPipelines:
    """spaCy imports an installed package by its name, and calls its `load`."""

    def language(self, name: str) -> dict[str, Any]:
        tokenizer = {"type": "spacy", "language": name}
        return {
            **CONFIG,
            "dataset_reader": {"type": "text_classification_json", "tokenizer": tokenizer},
        }

    @pytest.mark.parametrize("kind", ["entry point", "meta.json", "neither"])
    def test_a_package_with_a_pipeline_is_accepted(self, tmp_path, monkeypatch, kind):
        (tmp_path / "xx_walk_test").mkdir()
        (tmp_path / "xx_walk_test" / "__init__.py").touch()
        metadata = tmp_path / "xx_walk_test-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: xx_walk_test\nVersion: 1.0\n"
        )
        if kind == "entry point":
            (metadata / "entry_points.txt").write_text(
                "[spacy_models]\nxx_walk_test = xx_walk_test\n"
            )
        if kind == "meta.json":
            (tmp_path / "xx_walk_test" / "meta.json").write_text("{}")
        monkeypatch.syspath_prepend(tmp_path)
        if kind == "neither":
            with pytest.raises(ConfigurationError, match="installed pipeline"):
                harmless_config(self.language("xx_walk_test"), tmp_path)
        else:
            harmless_config(self.language("xx_walk_test"), tmp_path)

    @pytest.mark.parametrize("name", ["torch", "joblib", "pip", "os", "../x", "/x", "blank:en", ""])
    def test_other_packages_and_paths_are_refused(self, tmp_path, name):
        with pytest.raises(ConfigurationError, match="installed pipeline"):
            harmless_config(self.language(name), tmp_path)


def transformer(**arguments: Any) -> dict[str, Any]:
    return {"tokens": {"type": "pretrained_transformer", "model_name": "org/name", **arguments}}


class TestCheckConfig:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {
                "data_loader": {
                    "batch_sampler": {"type": "bucket", "batch_size": 2, "sorting_keys": ["tokens"]}
                }
            },
            {"trainer": {"type": "my_project.Trainer"}, "train_data_path": "/data/train.txt"},
            {"vocabulary": {"type": "from_instances", "pretrained_files": {"tokens": "http://x"}}},
            {"evaluation": {"type": "simple"}},
            {
                "dataset_reader": {
                    "type": "sequence_tagging",
                    "token_indexers": {"tokens": "single_id"},
                }
            },
            {
                "dataset_reader": {
                    "type": "sequence_tagging",
                    "token_indexers": transformer(max_length=9),
                }
            },
            {
                "dataset_reader": {
                    "type": "sequence_tagging",
                    "token_indexers": transformer(
                        tokenizer_kwargs={"pad_token": "x", "use_fast": False}
                    ),
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
        config["model"]["initializer"] = {
            "regexes": [["", {"type": "pretrained", "weights_file_path": "x"}]]
        }
        harmless_config(config, tmp_path)

    def test_files_of_the_archive_may_be_named(self, tmp_path: Path):
        reader = {"type": "sequence_tagging", "serialization_dir": str(tmp_path / "x")}
        harmless_config({**CONFIG, "dataset_reader": reader}, tmp_path)
        with pytest.raises(
            ConfigurationError, match=r"file in the archive.*dataset_reader\.serialization_dir"
        ):
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
        harmless_config(
            {"dataset_reader": {"type": "conll2003", "coding_scheme": "/etc/passwd"}}, tmp_path
        )
