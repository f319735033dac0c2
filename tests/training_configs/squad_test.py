import json

import pytest

from elmo_tasks.data.formats.squad_json import read_questions
from tests.training_configs.configs import train_and_clear


@pytest.mark.slow
class TestTraining:
    @pytest.mark.parametrize("name", ["squad.jsonnet", "squad_elmo.jsonnet"])
    def test_a_published_config_trains_and_its_archive_stands_alone(
        self, environment, command, tmp_path, small_squad, name
    ):
        """
        Oracle: AllenNLP's commands, on the config as it is but for one epoch: the archive predicts though data, word
        vectors and biLM are deleted; a file of SQuAD and its questions in JSON lines have the same predictions, and
        they become the input of the official script: an answer for each question.
        """
        trained = train_and_clear(command, environment, tmp_path, small_squad, name)
        metrics = trained.metrics()
        assert 0.0 <= metrics["validation_em"] <= metrics["validation_f1"] <= 1.0
        file = trained.data / "dev.json"
        questions = list(read_questions(str(file)))
        assert len(questions) > 7
        lines = tmp_path / "dev.jsonl"
        inputs = [{"id": q.id, "question": q.text, "passage": q.paragraph} for q in questions]
        lines.write_text("".join(json.dumps(line) + "\n" for line in inputs))
        from_file = trained.predictions(file, "--use-dataset-reader")
        official = tmp_path / "official.json"
        command("elmo-squad-predictions", trained.run / "predictions.jsonl", official)
        from_lines = trained.predictions(lines, "--batch-size", "7")
        answers = {prediction["id"]: prediction["best_span_str"] for prediction in from_file}
        assert list(answers) == [question.id for question in questions]
        assert answers == {prediction["id"]: prediction["best_span_str"] for prediction in from_lines}
        assert answers == json.loads(official.read_text())
        for question, prediction in zip(questions, from_file, strict=True):
            assert prediction["best_span_str"] in question.paragraph
            assert 0.0 <= prediction["score"] <= 1.0
