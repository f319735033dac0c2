import json

import pytest

from elmo_tasks.data.dataset_readers.srl_reader import read_propositions
from tests.paths import TRAINING_CONFIGS
from tests.training_configs.configs import evaluated, train_and_clear

# Small enough for a test: two layers of 20 in place of eight of 300.
SMALL = {
    "model.encoder.hidden_size": 20,
    "model.encoder.num_layers": 2,
    "data_loader.batch_sampler.batch_size": 16,
}


class TestSrlConfigs:
    def test_the_sizes_are_the_papers(self, environment):
        """Oracle: section A.5 of the paper, by hand."""
        config = evaluated(TRAINING_CONFIGS / "srl_elmo.jsonnet")
        encoder, trainer = config["model"]["encoder"], config["trainer"]
        assert (encoder["hidden_size"], encoder["num_layers"], encoder["recurrent_dropout_probability"]) == (
            300,
            8,
            0.1,
        )
        assert config["model"]["predicate_dim"] == 100
        assert config["model"]["text_field_embedder"]["token_embedders"]["tokens"]["trainable"] is True
        assert trainer["optimizer"] == {"type": "elmo_lazy_adadelta", "lr": 1.0, "rho": 0.95}
        assert (trainer["grad_clipping"], trainer["num_epochs"], trainer["patience"]) == (1.0, 500, 200)
        assert "grad_norm" not in trainer
        assert trainer["validation_metric"] == "+f1"
        assert config["data_loader"]["batch_sampler"]["batch_size"] == 80
        elmo = config["model"]["text_field_embedder"]["token_embedders"]["elmo"]
        assert (elmo["dropout"], elmo["layer_norm"]) == (0.1, None)


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", ["srl.jsonnet", "srl_elmo.jsonnet"])
    def test_a_published_config_trains_and_its_archive_stands_alone(
        self, environment, command, tmp_path, fixtures_root, name
    ):
        """
        Oracle: AllenNLP's commands, on the config with a small encoder, for one epoch: the archive predicts though
        data, word vectors and biLM are deleted; CoNLL-2012's files and JSON lines have the same predictions.
        """
        root = tmp_path / "root"
        root.mkdir()
        for part in ("srl", "glove"):
            (root / part).symlink_to(fixtures_root / part)
        trained = train_and_clear(command, environment, tmp_path, root, name, **SMALL)
        metrics = trained.metrics()
        assert all(0.0 <= metrics[f"validation_{name}"] <= 1.0 for name in ("f1", "span-f1", "perfect"))
        propositions = list(read_propositions(str(trained.data / "test")))
        assert len(propositions) > 15
        lines = tmp_path / "test.jsonl"
        inputs = ({"words": p.words, "predicates": [p.verb_indicator.index(1)]} for p in propositions)
        lines.write_text("".join(json.dumps(line) + "\n" for line in inputs))
        from_columns = trained.predictions(trained.data / "test", "--use-dataset-reader")
        from_lines = trained.predictions(lines, "--batch-size", "7")
        assert [prediction["words"] for prediction in from_columns] == [p.words for p in propositions]
        for of_columns, of_lines in zip(from_columns, from_lines, strict=True):
            (verb,) = of_lines["verbs"]
            assert {key: of_columns[key] for key in verb} == verb
            assert len(verb["tags"]) == len(of_columns["words"])
