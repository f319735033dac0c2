"""Tests of `allennlp elmo-coref-conll`."""

import json
import re

import pytest

from elmo_tasks.data.dataset_readers.coref_reader import read_documents

PREDICTIONS = [
    {
        "document_name": "bc/x",
        "part": 1,
        "sentences": [["Ann", "Cole", "sang"], ["She"]],
        "clusters": [[[0, 1], [3, 3]]],
    },
    {"document_name": "nw/y", "part": 0, "sentences": [["No", "one"]], "clusters": [], "texts": []},
]


class TestCorefConll:
    def test_the_file_says_what_the_predictions_say(self, command, tmp_path, capsys):
        """Oracle: the predictions, read with our reader of CoNLL's columns."""
        source, output = tmp_path / "predictions.jsonl", tmp_path / "output.conll"
        source.write_text("\n".join(map(json.dumps, PREDICTIONS)) + "\n\n")
        command("elmo-coref-conll", source, output)
        found = [
            {
                "document_name": document.name,
                "part": document.part,
                "sentences": document.sentences,
                "clusters": [[list(mention) for mention in cluster] for cluster in document.clusters],
            }
            for document in read_documents(str(output))
        ]
        assert found == [{key: prediction[key] for key in found[0]} for prediction in PREDICTIONS]
        assert f"wrote 2 documents to {output}" in capsys.readouterr().out

    @pytest.mark.parametrize(
        "line",
        [
            *('{"words": ["a"]}', "no json", "[]", '{"a": ' * 100_000),
            *(
                json.dumps({**PREDICTIONS[1], **change})
                for change in (
                    {"document_name": ""},
                    {"part": "0"},
                    {"sentences": ["No"]},
                    {"sentences": [["No one", "x"]]},
                )
            ),
        ],
        ids=["another task", "no JSON", "no object", "deep", "no name", "no part", "no lists", "two words in one"],
    )
    def test_what_is_no_prediction_is_named(self, error_of, tmp_path, line):
        """Oracle: the message says file, line and rule; nothing is written."""
        source, output = tmp_path / "predictions.jsonl", tmp_path / "output.conll"
        source.write_text(json.dumps(PREDICTIONS[0]) + f"\n{line}\n")
        assert re.search(
            r"predictions.jsonl, line 2: .* --use-dataset-reader", error_of("elmo-coref-conll", source, output)
        )
        assert not output.exists()

    def test_a_document_has_one_prediction(self, error_of, tmp_path):
        """Oracle: the message; an empty file is an error too."""
        source, output = tmp_path / "predictions.jsonl", tmp_path / "output.conll"
        source.write_text("\n".join(map(json.dumps, [*PREDICTIONS, PREDICTIONS[0]])))
        assert "line 3: a document must have one prediction, but part 1 of 'bc/x' has another" in error_of(
            "elmo-coref-conll", source, output
        )
        source.write_text("")
        assert "must hold at least one prediction" in error_of("elmo-coref-conll", source, output)

    @pytest.mark.parametrize("begin", ["#begin document (nw/y); part 0", "#begin document (nw/y)"])
    def test_documents_begin_as_those_of_the_gold_file(self, command, tmp_path, begin):
        """Oracle: the reference scorer compares these lines as they are."""
        source, gold, output = (tmp_path / name for name in ("predictions.jsonl", "gold.conll", "output.conll"))
        source.write_text(json.dumps(PREDICTIONS[1]))
        gold.write_text(f"{begin}\nx 0 0 No -\nx 0 1 one (0)\n\n#end document\n")
        command("elmo-coref-conll", source, output, "--gold", gold)
        assert output.read_text().splitlines()[0] == begin

    def test_missing_and_foreign_documents_are_named(self, command, error_of, tmp_path):
        """Oracle: the message, for predictions and gold documents of which one lacks a document."""
        source, gold, output = (tmp_path / name for name in ("predictions.jsonl", "gold.conll", "output.conll"))
        source.write_text("\n".join(map(json.dumps, PREDICTIONS)))
        command("elmo-coref-conll", source, gold)
        command("elmo-coref-conll", source, output, "--gold", gold)
        source.write_text(json.dumps(PREDICTIONS[0]) + "\n")
        assert re.search(
            r"predictions.jsonl must hold the same documents as .*gold.conll, but lacks 1, part 0 of 'nw/y' among",
            error_of("elmo-coref-conll", source, output, "--gold", gold, "--force"),
        )
        assert "gold.conll must not be there yet" in error_of("elmo-coref-conll", source, gold)
        for same in (source, gold):
            before = same.read_bytes()
            error = error_of("elmo-coref-conll", source, same, "--gold", gold, "--force")
            assert "must be another file than what is read" in error and same.read_bytes() == before
        command("elmo-coref-conll", source, gold, "--force")
        source.write_text("\n".join(map(json.dumps, PREDICTIONS)))
        assert re.search(
            r"gold.conll must hold the same documents as .*predictions.jsonl, but lacks 1, part 0 of 'nw/y' among",
            error_of("elmo-coref-conll", source, output, "--gold", gold, "--force"),
        )

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
