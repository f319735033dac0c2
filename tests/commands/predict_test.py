"""Tests of `allennlp predict`, line by line."""

import bz2
import codecs
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.data.fields import MetadataField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.commands import predict as module
from elmo_tasks.data.fields import KnownLabelField
from elmo_tasks.predictors import SentencePredictor
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor, are_words


class LinesReader(DatasetReader):
    """A word and, after a blank, its label in each line."""

    def _read(self, file_path: str) -> Iterator[Instance]:
        for number, line in enumerate(Path(file_path).read_text().splitlines(), start=1):
            word, *label = line.split()
            if len(label) > 1:
                raise ValueError(f"{file_path}, line {number}: must have one label")
            yield self.text_to_instance([word], *label)

    def text_to_instance(self, words: list[str], label: str | None = None) -> Instance:
        fields: dict[str, Any] = {"words": MetadataField(words)}
        if label is not None:
            fields["label"] = KnownLabelField(label, "the file")
        return Instance(fields)


class LengthModel(Model):
    """Says how many words there are and how many sentences come with them; a sentence of "bad" is a wrong one."""

    def __init__(self) -> None:
        super().__init__(Vocabulary())
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, words: list[list[str]]) -> dict[str, Any]:
        if ["bad"] in words:
            raise ValueError("bad words")
        return {"n": [len(sentence) for sentence in words], "batch": [len(words)] * len(words)}


class LengthPredictor(JsonLinesPredictor):
    example: ClassVar[JsonDict] = {"words": ["a"]}
    rule: ClassVar[str] = '"words" with a list of words'
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"words": ()}

    def instance_of(self, inputs: JsonDict) -> Instance | JsonDict | None:
        if not are_words(inputs["words"]):
            return None
        return self._dataset_reader.text_to_instance(inputs["words"]) if inputs["words"] else {"n": 0}


class UncheckedPredictor(Predictor):
    """One that takes its lines as they come, as those of other packages do."""

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        return self._dataset_reader.text_to_instance(json_dict["words"])


GOOD, EMPTY = '{"words": ["a", "b"]}', '{"words": []}'
# What is wrong, and what the error says.
BAD = {
    "no object": ("[1]", "must be a JSON object like"),
    "no JSON": ("{", "must be a JSON object like"),
    "deep": ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    "key": ('{"sentence": "a"}', 'must have "words" with a list'),
    "ignored key": ('{"words": ["a"], "id": 1}', "would be ignored"),
    "type": ('{"words": "a"}', 'must have "words" with a list'),
    "no UTF-8": ('{"words": ["caf\udce9"]}', "must be UTF-8, but byte 16 of this line is 0xe9"),
    "model": ('{"words": ["bad"]}', "bad words"),
}


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[type[Predictor]], None]:
    """Makes the command use a predictor in place of that of an archive."""
    return lambda kind: monkeypatch.setattr(module, "_get_predictor", lambda _: kind(LengthModel(), LinesReader()))


@pytest.fixture
def predict(command: Callable[..., None], use: Callable[..., None], tmp_path: Path) -> Callable[..., list[JsonDict]]:
    """Runs the command on lines, and returns the predictions and, from standard error, what it says."""
    use(LengthPredictor)

    def run(lines: list[str], *options: object, name: str = "in.jsonl") -> list[JsonDict]:
        content = "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")
        (tmp_path / name).write_bytes(bz2.compress(content) if name.endswith(".bz2") else content)
        output = tmp_path / "out.jsonl"
        output.unlink(missing_ok=True)
        command("predict", "archive", tmp_path / name, "--output-file", output, "--silent", *options)
        return read(output)

    return run


def read(path: Path) -> list[JsonDict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestPredict:
    @pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.bz2"])
    def test_good_lines_are_predicted_in_batches(self, predict, name):
        """Oracle: by hand; blank lines are none."""
        found = predict([GOOD, "", EMPTY, " \t", GOOD, GOOD], "--batch-size", 3, name=name)
        assert found == [{"n": 2, "batch": 2}, {"n": 0}, {"n": 2, "batch": 2}, {"n": 2, "batch": 1}]

    @pytest.mark.parametrize(("options", "length"), [([], 1), (["--no-nfc"], 2)])
    def test_texts_are_put_into_nfc(self, predict, monkeypatch, options, length):
        """Oracle: by hand: an e and its accent are one character in NFC; also as escapes in the JSON."""
        monkeypatch.setattr(LengthModel, "forward", lambda self, words: {"n": [len(each[0]) for each in words]})
        found = predict(['{"words": ["e\u0301"]}', '{"words": ["e\\u0301"]}'], *options)
        assert found == [{"n": length}] * 2

    def test_what_is_no_text_stays_as_it_is(self, predict, use):
        """Oracle: by hand, for a predictor that names its keys."""

        class WithId(LengthPredictor):
            verbatim: ClassVar[tuple[str, ...]] = ("id",)
            forms: ClassVar[dict[str, tuple[str, ...]]] = {"words": ("id",)}

            def instance_of(self, inputs: JsonDict) -> JsonDict:
                return inputs

        use(WithId)
        assert predict(['{"words": ["e\u0301"], "id": "e\u0301"}']) == [{"words": ["é"], "id": "e\u0301"}]

    @pytest.mark.parametrize("batch_size", [1, 4])
    @pytest.mark.parametrize("bad", BAD)
    def test_the_first_bad_line_ends_the_command_after_those_before_it(self, predict, tmp_path, bad, batch_size):
        """Oracle: the one line on stderr, with file, line and rule; the predictions of the two lines before it."""
        line, message = BAD[bad]
        with pytest.raises(SystemExit) as ended:
            predict([GOOD, "", EMPTY, line, GOOD], "--batch-size", batch_size)
        text = ended.value.code
        assert isinstance(text, str) and "\n" not in text
        assert text.startswith(f"allennlp predict: error: {tmp_path / 'in.jsonl'}, line 4: ")
        assert message in text and text.count("line 4") == 1
        assert [prediction["n"] for prediction in read(tmp_path / "out.jsonl")] == [2, 0]

    @pytest.mark.parametrize("batch_size", [1, 4, 100])
    def test_with_keep_going_all_good_lines_are_predicted(self, predict, tmp_path, capsys, batch_size):
        """Oracle: by hand: an error with its line in the place of each bad line, and their number on stderr."""
        lines = [line for bad, _ in BAD.values() for line in (bad, GOOD, "")]
        found = predict(lines, "--batch-size", batch_size, "--keep-going")
        assert [prediction["n"] for prediction in found[1::2]] == [2] * len(BAD)
        for place, (error, (_, message)) in enumerate(zip(found[::2], BAD.values(), strict=True)):
            assert set(error) == {"error", "line"}
            assert error["line"] == 3 * place + 1
            assert message in error["error"] and "in.jsonl" not in error["error"]
        said = capsys.readouterr().err
        assert f"warning: {len(BAD)} of {2 * len(BAD)} lines of {tmp_path / 'in.jsonl'} could not be predicted" in said

    def test_the_archive_is_not_replaced(self, command, use, tmp_path):
        """Oracle: the message and the files; a folder is no output either."""
        use(LengthPredictor)
        archive, weights, lines = (tmp_path / name for name in ("model.tar.gz", "best.th", "lines.jsonl"))
        for path in (archive, weights):
            path.write_text("mine")
        lines.write_text(f"{GOOD}\n")
        for output, message in (
            (archive, "must be another file than what is read"),
            (weights, "must be another file than what is read"),
            (tmp_path, "must be a file, but .* is a folder"),
        ):
            with pytest.raises(SystemExit, match=message):
                command("predict", archive, lines, "--output-file", output, "--weights-file", weights, "--silent")
        assert archive.read_text() == weights.read_text() == "mine"

    def test_an_output_stays_if_nothing_can_be_predicted(self, command, use, tmp_path):
        """Oracle: the files, for an input with another name, one with a bad line, and one that is the output."""
        use(LengthPredictor)
        output, lines = tmp_path / "out.jsonl", tmp_path / "lines.jsonl"
        output.write_text(f"{GOOD}\n")
        lines.write_text("no JSON\n")
        (tmp_path / "link.jsonl").symlink_to(output)
        for name, message in (
            ("missing.jsonl", "missing.jsonl"),
            ("lines.jsonl", "line 1: a line must be a JSON object"),
            ("link.jsonl", "must be another file than what is read, but .*out.jsonl is both"),
        ):
            with pytest.raises(SystemExit, match=message):
                command("predict", "archive", tmp_path / name, "--output-file", output, "--silent")
            assert output.read_text() == f"{GOOD}\n"
        lines.write_text("")
        command("predict", "archive", lines, "--output-file", output, "--silent")
        assert output.read_text() == ""

    def test_standard_input_may_begin_with_a_byte_order_mark(self, command, use, monkeypatch, tmp_path):
        """Oracle: by hand, as for a file from Windows."""
        use(LengthPredictor)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(codecs.BOM_UTF8 + f"{GOOD}\n".encode())))
        command("predict", "archive", "-", "--output-file", tmp_path / "out.jsonl", "--silent")
        assert read(tmp_path / "out.jsonl")[0]["n"] == 2

    def test_with_keep_going_and_good_lines_nothing_is_said(self, predict, capsys):
        """Oracle: standard error."""
        assert predict([GOOD, EMPTY], "--keep-going") == [{"n": 2, "batch": 1}, {"n": 0}]
        assert "warning" not in capsys.readouterr().err

    def test_lines_of_standard_input_have_numbers_too(self, command, use, monkeypatch, capsys):
        """Oracle: by hand; the console has the lines without control characters."""
        use(LengthPredictor)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{GOOD}\n\x1b[31m\n".encode())))
        with pytest.raises(SystemExit, match=r"error: standard input, line 2: a line must be a JSON object"):
            command("predict", "archive", "-")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{GOOD}\n\x1b[31m\n".encode())))
        command("predict", "archive", "-", "--keep-going")
        shown = capsys.readouterr().out
        assert 'input 1:  "\\u001b[31m"' in shown and "\x1b" not in shown

    def test_a_predictor_that_checks_nothing_can_keep_going(self, predict, use):
        """Oracle: by hand; without the option, the error is its own, with the place as a note."""
        use(UncheckedPredictor)
        lines = [GOOD, '{"sentence": "a"}', '{"words": 7}', "7", "{", GOOD]
        found = predict(lines, "--keep-going", "--batch-size", 6)
        assert [error.get("line") for error in found] == [None, 2, 3, 4, 5, None]
        assert found[1]["error"] == "KeyError: 'words'"
        with pytest.raises(KeyError) as error:
            predict(lines, "--batch-size", 6)
        assert error.value.__notes__[0].endswith("in.jsonl, line 2")

    def test_a_file_of_the_reader_needs_no_known_labels(self, predict):
        """Oracle: the predictions without labels; the vocabulary knows none."""
        options = "--use-dataset-reader", "--batch-size", 2
        found = predict(["a new", "b", "c other"], *options)
        assert found == predict(["a", "b", "c"], *options) and len(found) == 3

    def test_an_instance_that_cannot_be_predicted_has_its_number(self, predict):
        """Oracle: by hand."""
        with pytest.raises(SystemExit, match=r"in\.jsonl, instance 2: bad words"):
            predict(["a", "bad"], "--use-dataset-reader", "--batch-size", 2)
        found = predict(["a", "bad", "c"], "--use-dataset-reader", "--keep-going", "--batch-size", 2)
        assert found[1] == {"error": "bad words", "instance": 2}
        assert [prediction.get("n") for prediction in found] == [1, None, 1]

    def test_an_error_of_the_reader_ends_the_command_after_the_instances_before_it(self, predict, tmp_path):
        """Oracle: the message of the reader; `--keep-going` does not change it."""
        with pytest.raises(SystemExit, match=r"in\.jsonl, line 3: must have one label"):
            predict(["a", "b", "c x y", "d"], "--use-dataset-reader", "--keep-going", "--batch-size", 4)
        assert [prediction["n"] for prediction in read(tmp_path / "out.jsonl")] == [1, 1]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--batch-size", "0"], "--batch-size must be at least 1, but is 0"),
            (["--silent"], "with --silent, predictions must have an --output-file"),
            (["--output-file", "not/there/out.jsonl"], "not/there must be a folder, but is not: make it first"),
            (["--predictor-args", "language=de"], "--predictor-args must be a JSON object, such as .* 'language=de'"),
            (["--predictor-args", "[1]"], "--predictor-args must be a JSON object"),
        ],
    )
    def test_options_that_would_predict_nothing_are_errors(self, command, use, options, message):
        """Oracle: the message."""
        use(LengthPredictor)
        with pytest.raises(SystemExit, match=message):
            command("predict", "archive", "in.jsonl", *options)

    def test_an_argument_that_a_predictor_does_not_have_is_named(self, command, monkeypatch):
        """Oracle: the message; an error of the predictor itself keeps its traceback."""
        arguments = {"language": lambda: SentencePredictor(LengthModel(), LinesReader(), langauge="de")}
        monkeypatch.setattr(module, "_get_predictor", lambda _: arguments["language"]())
        call = ("predict", "archive", "in.jsonl", "--predictor-args", '{"langauge": "de"}')
        with pytest.raises(SystemExit, match=r"arguments of SentencePredictor \(.*language.*\), but has 'langauge'"):
            command(*call)
        arguments["language"] = lambda: len(3)
        with pytest.raises(TypeError, match="has no len"):
            command(*call)

    def test_a_model_without_a_predictor_needs_a_file_of_its_reader(self, command, use, tmp_path):
        """Oracle: the message, of AllenNLP's predictor that a language model has; and the prediction by hand."""
        use(Predictor)
        (tmp_path / "in.txt").write_text("a\n")
        with pytest.raises(SystemExit, match=r"but a LengthModel has none: .* --use-dataset-reader"):
            command("predict", "archive", tmp_path / "in.txt")
        output = tmp_path / "out.jsonl"
        command("predict", "archive", tmp_path / "in.txt", "--use-dataset-reader", "--output-file", output, "--silent")
        assert read(output) == [{"n": 1, "batch": 1}]

    def test_an_archive_that_is_not_there_is_one_line(self, command, tmp_path):
        """Oracle: the message."""
        with pytest.raises(SystemExit, match=r"^allennlp predict: error: .*no\.tar\.gz not found$"):
            command("predict", tmp_path / "no.tar.gz", "in.jsonl")
