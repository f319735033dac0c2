import json

import pytest

from elmo_tasks.data.dataset_readers.ner_reader import read_columns
from tests.training_configs.configs import train_and_clear


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", ["ner.jsonnet", "ner_elmo.jsonnet"])
    def test_a_published_config_trains_and_its_archive_stands_alone(
        self, environment, command, tmp_path, small_ner, name
    ):
        """
        Oracle: AllenNLP's commands, on the config as it is but for one epoch: the archive predicts though data, word
        vectors and biLM are deleted; a file in columns and its words in JSON lines have the same predictions.
        """
        trained = train_and_clear(command, environment, tmp_path, small_ner, name)
        assert 0.0 <= trained.metrics()["validation_f1-measure-overall"] <= 1.0
        columns = trained.data / "test.txt"
        sentences = [words for words, *_ in read_columns(columns)]
        assert len(sentences) > 20
        lines = tmp_path / "test.jsonl"
        lines.write_text("".join(json.dumps({"words": words}) + "\n" for words in sentences))
        from_columns = trained.predictions(columns, "--use-dataset-reader")
        from_lines = trained.predictions(lines, "--batch-size", "7")
        assert [prediction["words"] for prediction in from_columns] == sentences
        assert [prediction["tags"] for prediction in from_columns] == [p["tags"] for p in from_lines]
        for words, prediction in zip(sentences, from_columns, strict=True):
            assert len(prediction["tags"]) == len(words)
            assert all(0.0 <= span["score"] <= 1.0 for span in prediction["spans"])
