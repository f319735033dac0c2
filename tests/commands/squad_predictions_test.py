"""Tests of `allennlp elmo-squad-predictions`."""

import json
import re
from pathlib import Path

import pytest

LINES = [
    {"id": "q1", "best_span_str": "Ann Lee", "best_span": [0, 1], "score": 0.5},
    {"id": "q2", "best_span_str": "Encyclopædia 😀", "best_span": [3, 4], "score": 0.25},
]


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "predictions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return path


class TestSquadPredictions:
    def test_ids_and_answers_are_one_object(self, command, predictions, tmp_path, capsys):
        """Oracle: by hand."""
        output = tmp_path / "new" / "official.json"
        command("elmo-squad-predictions", predictions, output)
        assert json.loads(output.read_text(encoding="utf-8")) == {"q1": "Ann Lee", "q2": "Encyclopædia 😀"}
        assert f"wrote 2 answers to {output}" in capsys.readouterr().out

    def test_empty_lines_are_no_answers_and_an_answer_may_be_empty(self, command, predictions, tmp_path):
        """Oracle: by hand."""
        predictions.write_text('\n{"id": "q1", "best_span_str": ""}\n\n')
        command("elmo-squad-predictions", predictions, tmp_path / "official.json")
        assert json.loads((tmp_path / "official.json").read_text()) == {"q1": ""}

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ({"id": "q1", "best_span_str": "x"}, "line 3: .* but q1 has one in line 1 too"),
            ({"id": None, "best_span_str": "x"}, "line 3: must have the 'id' of a question.*--use-dataset-reader"),
            ({"id": "", "best_span_str": "x"}, "line 3: must have the 'id' of a question"),
            ({"best_span_str": "x"}, "line 3: must have the 'id' of a question"),
            ({"id": "q3"}, "line 3: must have the 'id' of a question and the answer as 'best_span_str'"),
            ([], "line 3: must be a JSON object, .*it is a list"),
            ('{"id": ' * 100_000, "line 3: must be a JSON object, .*nested too deeply"),
            ({"id": "q3", "best_span_str": "\ud800"}, "line 3: the answer: a text must be Unicode"),
            ("{", r"line 3: must be a JSON object, but is '\{'"),
        ],
    )
    def test_a_broken_line_is_named(self, error_of, predictions, tmp_path, line, message):
        """Oracle: the message, with file and line; nothing is written."""
        with predictions.open("a") as file:
            file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        assert re.search(
            f"{re.escape(str(predictions))}, {message}",
            error_of("elmo-squad-predictions", predictions, tmp_path / "official.json"),
        )
        assert not (tmp_path / "official.json").exists()

    def test_the_predictions_are_not_replaced(self, error_of, predictions):
        """Oracle: the message, also with `--force`, and the file."""
        before = predictions.read_bytes()
        error = error_of("elmo-squad-predictions", predictions, predictions, "--force")
        assert "must be another file than what is read" in error and predictions.read_bytes() == before

    def test_a_file_without_predictions_is_an_error(self, error_of, predictions, tmp_path):
        """Oracle: the message."""
        predictions.write_text("\n")
        assert re.search(
            "must hold at least one prediction, but holds none",
            error_of("elmo-squad-predictions", predictions, tmp_path / "official.json"),
        )

    def test_a_file_that_is_there_stays(self, command, error_of, predictions, tmp_path):
        """Oracle: the message and its remedy; the file."""
        output = tmp_path / "official.json"
        output.write_text("mine")
        assert re.search(
            r"official.json must not be there yet.*--force", error_of("elmo-squad-predictions", predictions, output)
        )
        assert output.read_text() == "mine"
        command("elmo-squad-predictions", predictions, output, "--force")
        assert len(json.loads(output.read_text())) == 2

    def test_files_that_cannot_be_read_or_written_are_an_error(self, error_of, predictions, tmp_path):
        """Oracle: the message names the file."""
        output = tmp_path / "official.json"
        assert "missing.jsonl" in error_of("elmo-squad-predictions", tmp_path / "missing.jsonl", output)
        assert f"Is a directory: '{tmp_path}'" in error_of("elmo-squad-predictions", tmp_path, output)
        assert f"must be a file, but '{tmp_path}' is a folder" in error_of(
            "elmo-squad-predictions", predictions, tmp_path, "--force"
        )
        assert str(predictions) in error_of("elmo-squad-predictions", predictions, predictions / "official.json")
        assert not output.exists()
