import json
from typing import Any, ClassVar

import pytest
import torch
from allennlp.data import DatasetReader, Instance, Token, Vocabulary
from allennlp.data.fields import MetadataField
from allennlp.models import Model

from elmo_tasks.predictors.sentence_predictor import SentencePredictor

SENTENCE = "It doesn't work."
WORDS = ["It", "does", "n't", "work", "."]


class EchoReader(DatasetReader):
    def text_to_instance(self, words: list[str | Token]) -> Instance:
        """The words themselves, with the place in the text of those that have one."""
        texts = [word if isinstance(word, str) else word.text for word in words]
        return Instance({"words": MetadataField(texts)})


class EchoModel(Model):
    def __init__(self, vocab: Vocabulary) -> None:
        super().__init__(vocab)
        # A predictor asks the first parameter for its device.
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, words: list[list[str]]) -> dict[str, Any]:
        return {"words": words}


class EchoPredictor(SentencePredictor):
    example: ClassVar[dict[str, str]] = {"sentence": "Go on ."}


@pytest.fixture
def make_predictor():
    def make(**kwargs: Any) -> EchoPredictor:
        return EchoPredictor(EchoModel(Vocabulary()), EchoReader(), **kwargs)

    return make


@pytest.fixture
def predictor(make_predictor) -> EchoPredictor:
    return make_predictor()


class TestSentencePredictor:
    def test_a_sentence_is_tokenized(self, predictor):
        """Oracle: the words by hand."""
        for output in (predictor.predict(SENTENCE), predictor.predict_json({"sentence": SENTENCE})):
            assert output == {"words": WORDS}

    def test_words_are_taken_as_they_are(self, predictor):
        """Oracle: the words that came in; a sentence goes before them."""
        words = ["It doesn't", "work."]
        assert predictor.predict_json({"words": words}) == {"words": words}
        assert predictor.predict_json({"words": words, "sentence": SENTENCE}) == {"words": WORDS}

    def test_the_language_is_that_of_the_tokenizer(self, make_predictor):
        """Oracle: German rules, by which `z.B.` is one word."""
        assert make_predictor(language="de").predict("z.B. hier") == {"words": ["z.B.", "hier"]}

    @pytest.mark.parametrize(
        "inputs",
        [{}, {"text": SENTENCE}, {"sentence": WORDS}, {"sentence": None}, {"words": SENTENCE}, {"words": [1]}, [], 7],
        ids=json.dumps,
    )
    def test_other_inputs_are_errors(self, predictor, inputs):
        """Oracle: the message says what is wanted and what came."""
        with pytest.raises(ValueError, match='"sentence" with a text, or "words" with a list of words, but') as error:
            predictor.predict_json(inputs)
        assert str(error.value).endswith(json.dumps(inputs))

    def test_a_long_wrong_input_is_cut_short_in_the_message(self, predictor):
        """Oracle: the length of the message."""
        with pytest.raises(ValueError) as error:
            predictor.predict_json({"text": "a" * 10_000})
        assert len(str(error.value)) < 400

    def test_a_line_that_is_not_json_is_named(self, predictor):
        """Oracle: the number of the line, its beginning, and the example of the predictor."""
        predictor.load_line('{"sentence": "fine"}\n')
        with pytest.raises(ValueError, match=r"line 2 .*\{\"sentence\": \"Go on \.\"\}, but is 'It works'"):
            predictor.load_line("It works\n")
