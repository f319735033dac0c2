import json
from typing import Any, ClassVar

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.data.fields import MetadataField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.data.fields import KnownLabelField
from elmo_tasks.predictors import SentencePredictor, SrlPredictor
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor


class EchoReader(DatasetReader):
    def text_to_instance(self, line: JsonDict) -> Instance:
        return Instance({"line": MetadataField(line)})


class EchoModel(Model):
    def __init__(self, vocab: Vocabulary) -> None:
        super().__init__(vocab)
        # A predictor asks the first parameter for its device.
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, line: list[JsonDict]) -> dict[str, Any]:
        return {"line": line}


class ExamplePredictor(JsonLinesPredictor):
    example: ClassVar[JsonDict] = {"sentence": "It rains ."}
    rule: ClassVar[str] = 'the key "sentence" with a text, or "words"'
    forms: ClassVar[dict[str, tuple[str, ...]]] = {"sentence": (), "words": ("places", "id")}

    def instance_of(self, inputs: JsonDict) -> Instance | JsonDict | None:
        if inputs.get("sentence") == "":
            return {"line": None}
        return None if inputs.get("sentence") == 7 else self._dataset_reader.text_to_instance(inputs)


@pytest.fixture
def predictor() -> ExamplePredictor:
    return ExamplePredictor(EchoModel(Vocabulary()), EchoReader())


class MyPredictor(SrlPredictor):
    """One of another package, for lines of words."""


class TestModelsOfOtherTasks:
    @pytest.mark.parametrize(("name", "kind"), [("elmo_sentence", SrlPredictor), ("elmo_srl", SentencePredictor)])
    def test_a_model_of_other_lines_is_an_error(self, name, kind):
        """Oracle: the message; the predictor of the model, and one of another package."""
        model = EchoModel(Vocabulary())
        model.default_predictor = name
        with pytest.raises(
            ConfigurationError, match=f"a {kind.__name__} must have .* EchoModel, is for the predictor '{name}': omit"
        ):
            kind(model, EchoReader())
        assert Predictor.by_name(name)(model, EchoReader())
        assert ExamplePredictor(model, EchoReader()) and MyPredictor(model, EchoReader())

    @pytest.mark.parametrize("name", ["my_lines", "not_registered", "text_classifier", None])
    def test_a_model_of_another_package_is_none(self, name):
        """Oracle: the predictors are made."""
        Predictor.register("my_lines", exist_ok=True)(MyPredictor)
        model = EchoModel(Vocabulary())
        model.default_predictor = name
        assert SentencePredictor(model, EchoReader())


class TestJsonLinesPredictor:
    def test_a_line_is_what_json_says(self, predictor):
        """Oracle: by hand."""
        assert predictor.load_line('{"sentence": "It rains .", "n": [1]}\n') == {"sentence": "It rains .", "n": [1]}

    @pytest.mark.parametrize("line", ["[1]\n", "It rains .\n", '{"sentence"\n', "null\n", "\x00"])
    def test_a_line_that_is_not_an_object_is_an_error_that_gives_an_example(self, predictor, line):
        """Oracle: the rule."""
        with pytest.raises(ValueError, match="must be a JSON object like") as error:
            predictor.load_line(line)
        assert '{"sentence": "It rains ."}' in str(error.value)
        assert repr(line.strip()) in str(error.value)

    def test_a_key_that_is_there_twice_is_an_error(self, predictor):
        """Oracle: the message; JSON's rule of the last one would ignore a text."""
        with pytest.raises(ValueError, match="has the key 'sentence' twice"):
            predictor.load_line('{"sentence": "a", "sentence": "b"}')

    def test_deep_nesting_is_an_error_in_a_sentence(self, predictor):
        """Oracle: the message, without the 100,000 brackets."""
        for line in ("[" * 100_000 + "]" * 100_000, '{"sentence": ' + "[" * 100_000 + "]" * 100_000 + "}"):
            with pytest.raises(ValueError, match="nested too deeply") as error:
                predictor.load_line(line)
            assert len(str(error.value)) < 300
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(ValueError, match="nested too deeply"):
            predictor.predict_json({"text": deep})

    @pytest.mark.parametrize("line", [{"sentence": "a\ud800"}, {"words": ["a", "\ud800b"]}], ids=ascii)
    def test_half_a_pair_of_utf_16_is_an_error_in_a_sentence(self, predictor, line):
        """Oracle: the message; the biLM would pass over half a character."""
        with pytest.raises(ValueError, match=r"must be Unicode, but has '\\ud800', which is half a pair") as error:
            predictor.predict_json(line)
        assert not isinstance(error.value, UnicodeError)

    def test_a_line_without_words_does_not_reach_the_model(self, predictor, monkeypatch):
        """Oracle: the batches that the model gets, and its output for the other lines."""
        batches = []
        forward = predictor._model.forward
        monkeypatch.setattr(predictor._model, "forward", lambda line: batches.append(line) or forward(line))
        lines = [{"sentence": ""}, {"sentence": "a"}, {"sentence": ""}, {"words": ["b"]}]
        assert [output["line"] for output in predictor.predict_batch_json(lines)] == [None, lines[1], None, lines[3]]
        assert predictor.predict_json({"sentence": ""}) == {"line": None}
        assert batches == [[lines[1], lines[3]]]

    def test_gold_does_not_reach_the_model(self, predictor):
        """Oracle: the prediction without it; neither the vocabulary nor the model has a place for a label."""
        instance = predictor._dataset_reader.text_to_instance({"sentence": "a"})
        expected = predictor.predict_instance(instance)
        instance.add_field("label", KnownLabelField("new", "file, line 1"))
        assert predictor.predict_instance(instance) == expected
        assert predictor.predict_batch_instance([instance]) == [expected]
        assert "label" in instance.fields

    @pytest.mark.parametrize("line", [{"sentence": "a"}, {"words": []}, {"words": ["a"], "id": 7, "places": [0]}])
    def test_lines_of_all_forms_are_taken(self, predictor, line):
        """Oracle: the line that came in."""
        assert predictor.predict_json(line) == predictor.predict_batch_json([line])[0] == {"line": line}

    @pytest.mark.parametrize(
        ("line", "rule", "remedy"),
        [
            (
                {"sentence": "a", "places": [0]},
                'with "sentence" may have the key "sentence", but has "places"',
                'drop it, or give "words" in place of "sentence"',
            ),
            (
                {"words": ["a"], "sentence": "a"},
                'with "sentence" may have the key "sentence", but has "words"',
                'drop it, or give "words" in place of "sentence"',
            ),
            (
                {"words": ["a"], "gold": 1},
                'with "words" may have the keys "words", "places", "id", but has "gold"',
                "drop it (files of the task are read with --use-dataset-reader)",
            ),
        ],
    )
    def test_a_key_that_would_be_ignored_is_an_error(self, predictor, line, rule, remedy):
        """Oracle: the message says the form, the allowed keys, the key and the remedy."""
        for predict in (predictor.predict_json, lambda line: predictor.predict_batch_json([line])):
            with pytest.raises(ValueError) as error:
                predict(line)
            assert rule in str(error.value)
            assert f", which would be ignored: {remedy}" in str(error.value)

    @pytest.mark.parametrize("line", [{}, {"text": "a"}, {"sentence": 7}, [], 7], ids=json.dumps)
    def test_a_line_that_breaks_the_rule_is_an_error(self, predictor, line):
        """Oracle: the message says the rule and the line."""
        with pytest.raises(
            ValueError, match=r'must have the key "sentence" with a text, or "words" \(files of the task .*\), but is'
        ) as error:
            predictor.predict_json(line)
        assert str(error.value).endswith(json.dumps(line))

    def test_a_long_wrong_line_is_cut_short_in_the_message(self, predictor):
        """Oracle: the length of the message."""
        for line in ({"text": "a" * 10_000}, {"sentence": "a" * 10_000, "id": 7}):
            with pytest.raises(ValueError) as error:
                predictor.predict_json(line)
            assert len(str(error.value)) < 500
