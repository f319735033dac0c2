import json

import pytest

from elmo_tasks.data import SstReader
from tests.training_configs.configs import data_of, train_and_clear


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", ["sst.jsonnet", "sst_elmo.jsonnet"])
    def test_a_published_config_trains_and_its_archive_stands_alone(
        self, environment, command, tmp_path, fixtures_root, name
    ):
        """
        Oracle: AllenNLP's commands, on the config as it is but for one epoch: the archive predicts though data, word
        vectors and biLM are deleted; the trees, read as whole sentences, and their words in JSON lines have the same
        predictions.
        """
        data = data_of("sst", tmp_path / "fixtures", fixtures_root, n_train_lines=12)
        trained = train_and_clear(command, environment, tmp_path, data, name)
        assert 0.0 <= trained.metrics()["validation_accuracy"] <= 1.0
        trees = trained.data / "test.txt"
        sentences = [instance["metadata"].metadata["words"] for instance in SstReader().read(str(trees))]
        assert len(sentences) == 16
        lines = tmp_path / "test.jsonl"
        lines.write_text("".join(json.dumps({"words": words}) + "\n" for words in sentences))
        from_trees = trained.predictions(trees, "--use-dataset-reader")
        from_lines = trained.predictions(lines, "--batch-size", "7")
        assert [prediction["words"] for prediction in from_trees] == sentences
        for one, other in zip(from_trees, from_lines, strict=True):
            assert one["words"] == other["words"]
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-4)
