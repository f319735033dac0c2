import json

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.data import PosReader
from elmo_tasks.predictors.verb_finder import VerbFinder
from tests.paths import TRAINING_CONFIGS
from tests.training_configs.configs import data_of, differences, evaluated, train_and_clear

SENTENCE = ["We", "will", "play", "cards", "after", "dinner", "."]


class TestLayer:
    @pytest.mark.parametrize(("value", "layer"), [(None, 1), ("0", 0), ("2", 2), ("top", "top"), ("mix", "mix")])
    def test_the_environment_chooses_it(self, environment, value, layer):
        """Oracle: by hand; the first LSTM by default."""
        if value is None:
            environment.delenv("ELMO_TASKS_LAYER", raising=False)
        else:
            environment.setenv("ELMO_TASKS_LAYER", value)
        model = evaluated(TRAINING_CONFIGS / "pos_layer.jsonnet")["model"]
        assert model["text_field_embedder"]["token_embedders"]["elmo"]["layers"] == layer

    def test_an_unknown_layer_is_an_error(self, environment):
        """Oracle: the message says rule and value."""
        environment.setenv("ELMO_TASKS_LAYER", "first")
        with pytest.raises(ConfigurationError, match=r"ELMO_TASKS_LAYER must be 'mix', 'top' or .*, but is first"):
            evaluated(TRAINING_CONFIGS / "pos_layer.jsonnet")

    def test_arguments_take_precedence_over_the_environment(self, environment, tmp_path):
        """Oracle: by hand."""
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"(import '{TRAINING_CONFIGS}/lib/pos.libsonnet')(layer=2, tags='upos')")
        config = evaluated(snippet)
        assert config["dataset_reader"]["tags"] == "upos"
        assert config["model"]["text_field_embedder"]["token_embedders"]["elmo"]["layers"] == 2


class TestTagger:
    def test_elmo_changes_only_what_it_needs(self, environment):
        """Oracle: the list of keys."""
        baseline, elmo = (evaluated(TRAINING_CONFIGS / f"{name}.jsonnet") for name in ("pos", "pos_elmo"))
        assert differences(baseline, elmo) == {
            "dataset_reader.token_indexers.elmo",
            "model.encoder.input_size",
            "model.text_field_embedder.token_embedders.elmo",
        }
        width = 2 * elmo["model"]["text_field_embedder"]["token_embedders"]["elmo"]["options"]["lstm"]["projection_dim"]
        assert elmo["model"]["encoder"]["input_size"] == baseline["model"]["encoder"]["input_size"] + width

    def test_elmo_at_the_output_is_an_error(self, environment, tmp_path):
        """Oracle: the message."""
        snippet = tmp_path / "variant.jsonnet"
        snippet.write_text(f"(import '{TRAINING_CONFIGS}/lib/pos_tagger.libsonnet')(elmo_at=['output'])")
        with pytest.raises(ConfigurationError, match=r"""must be \[\] or \['input'\] here, but is \["output"\]"""):
            evaluated(snippet)


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", ["pos_layer.jsonnet", "pos_elmo.jsonnet"])
    def test_a_published_config_trains_and_its_archive_stands_alone(
        self, environment, command, tmp_path, fixtures_root, name
    ):
        """
        Oracle: AllenNLP's commands, on the config as it is but for one epoch: the archive predicts though data and biLM
        are deleted; CoNLL-U and its words in JSON lines have the same tags; `VerbFinder` takes it too, and finds
        the verbs that it predicts.
        """
        data = data_of("pos", tmp_path / "fixtures", fixtures_root)
        trained = train_and_clear(command, environment, tmp_path, data, name)
        assert 0.0 <= trained.metrics()["validation_accuracy"] <= 1.0
        conllu = trained.data / "test.conllu"
        sentences = [instance["metadata"].metadata["words"] for instance in PosReader().read(str(conllu))]
        lines = tmp_path / "test.jsonl"
        lines.write_text("".join(json.dumps({"words": words}) + "\n" for words in [*sentences, SENTENCE]))
        from_conllu = trained.predictions(conllu, "--use-dataset-reader")
        from_lines = trained.predictions(lines, "--batch-size", "4")
        assert [prediction["words"] for prediction in from_conllu] == sentences
        assert from_conllu == from_lines[:-1]
        tags = from_lines[-1]["tags"]
        verbs = [place for place, tag in enumerate(tags) if tag.startswith("VB") or tag == "MD"]
        assert VerbFinder("", str(trained.run / "model.tar.gz"))(SENTENCE) == verbs
