"""Tests of `allennlp elmo-coref-conll`."""

import json
import re

import pytest

from elmo_tasks.data.formats.coref_conll import read_documents

PREDICTIONS = [
    {"document": "bc/x", "part": 1, "sentences": [["Ann", "Cole", "sang"], ["She"]], "clusters": [[[0, 1], [3, 3]]]},
    {"document": "nw/y", "part": 0, "sentences": [["No", "one"]], "clusters": [], "texts": []},
]


class TestCorefConll:
    def test_the_file_says_what_the_predictions_say(self, command, tmp_path, capsys):
        """Oracle: the predictions, read with our reader of CoNLL's columns."""
        source, output = tmp_path / "predictions.jsonl", tmp_path / "output.conll"
        source.write_text("\n".join(map(json.dumps, PREDICTIONS)) + "\n\n")
        command("elmo-coref-conll", source, output)
        found = [
            {
                "document": document.name,
                "part": document.part,
                "sentences": document.sentences,
                "clusters": [[list(mention) for mention in cluster] for cluster in document.clusters],
            }
            for document in read_documents(str(output))
        ]
        assert found == [{key: prediction[key] for key in found[0]} for prediction in PREDICTIONS]
        assert f"wrote {output}" in capsys.readouterr().out

    @pytest.mark.parametrize(
        "line",
        ['{"words": ["a"]}', "no json", "[]", json.dumps({**PREDICTIONS[0], "document": ""})],
        ids=["another task", "no JSON", "no object", "JSON lines without a name"],
    )
    def test_what_is_no_prediction_is_named(self, error_of, tmp_path, line):
        """Oracle: the message says file, line and rule; nothing is written."""
        source, output = tmp_path / "predictions.jsonl", tmp_path / "output.conll"
        source.write_text(json.dumps(PREDICTIONS[0]) + f"\n{line}\n")
        assert re.search(
            r"predictions.jsonl, line 2: .* --use-dataset-reader", error_of("elmo-coref-conll", source, output)
        )
        assert not output.exists()

    @pytest.mark.parametrize(
        ("output", "named"), [("folder", "folder"), ("predictions.jsonl/output.conll", "predictions.jsonl")]
    )
    def test_what_cannot_be_written_is_an_error(self, error_of, tmp_path, output, named):
        """Oracle: the message names what is in the way."""
        (tmp_path / "predictions.jsonl").write_text(json.dumps(PREDICTIONS[0]) + "\n")
        (tmp_path / "folder").mkdir()
        assert f"'{tmp_path / named}'" in error_of(
            "elmo-coref-conll", tmp_path / "predictions.jsonl", tmp_path / output
        )

    def test_a_folder_is_no_file(self, error_of, tmp_path):
        """Oracle: the message names it."""
        assert f"Is a directory: '{tmp_path}'" in error_of("elmo-coref-conll", tmp_path, tmp_path / "output.conll")

    def test_a_file_that_is_not_there_is_an_error(self, error_of, tmp_path):
        """Oracle: the message names it."""
        assert re.search(
            r"missing\.jsonl", error_of("elmo-coref-conll", tmp_path / "missing.jsonl", tmp_path / "output.conll")
        )
