import json

import pytest
from allennlp.predictors import Predictor

from elmo_tasks.predictors import NerPredictor
from elmo_tasks.tags import tags_to_spans

SENTENCE = "Jordan doesn't like Chelsea."
WORDS = ["Jordan", "does", "n't", "like", "Chelsea", "."]


@pytest.fixture
def predictor(make_model) -> NerPredictor:
    tagger = make_model("ner", ["input"])
    return NerPredictor(tagger.model, tagger.reader)


class TestNerPredictor:
    def test_a_sentence_is_tokenized(self, predictor):
        """Oracle: the words by hand; the model's own output for them."""
        output = predictor.predict_json({"sentence": SENTENCE})
        assert set(output) == {"words", "tags", "spans"}
        assert output["words"] == WORDS
        assert output == predictor.predict_json({"words": WORDS}) == predictor.predict(SENTENCE)

    def test_words_are_taken_as_they_are(self, predictor):
        """Oracle: the words that came in."""
        words = ["Jordan doesn't", "like", "Chelsea."]
        assert predictor.predict_json({"words": words})["words"] == words

    def test_spans_say_what_the_tags_say(self, predictor):
        """Oracle: `tags_to_spans`, and the words between first and last."""
        spans = []
        for words in (WORDS, ["Ann", "Lee", "of", "New", "York"], ["x"]):
            output = predictor.predict_json({"words": words})
            spans += output["spans"]
            found = [(span["label"], span["start"], span["end"]) for span in output["spans"]]
            assert found == tags_to_spans(output["tags"])
            assert [span["text"] for span in output["spans"]] == [" ".join(words[s : e + 1]) for _, s, e in found]
        assert spans
        assert all(0.0 < span["score"] < 1.0 for span in spans)

    def test_a_batch_has_the_predictions_of_its_sentences(self, predictor):
        """Oracle: one sentence at a time."""
        inputs = [{"sentence": SENTENCE}, {"words": ["x"]}, {"sentence": "  "}, {"words": []}]
        together = predictor.predict_batch_json(inputs)
        for alone, output in zip(map(predictor.predict_json, inputs), together, strict=True):
            scores = [[span.pop("score") for span in one["spans"]] for one in (alone, output)]
            assert scores[0] == pytest.approx(scores[1], abs=1e-5)
            assert alone == output
        assert together[2] == together[3] == {"words": [], "tags": [], "spans": []}

    def test_the_output_is_json(self, predictor):
        """Oracle: what comes back from `json`."""
        output = predictor.predict_json({"sentence": "Encyclopædia 😀"})
        assert json.loads(predictor.dump_line(output)) == output

    @pytest.mark.parametrize(
        "inputs",
        [
            {},
            {"text": SENTENCE},
            {"sentence": WORDS},
            {"sentence": None},
            {"words": SENTENCE},
            {"words": [1, 2]},
            [],
            7,
        ],
        ids=json.dumps,
    )
    def test_other_inputs_are_errors(self, predictor, inputs):
        """Oracle: the message says what is wanted and what came."""
        with pytest.raises(
            ValueError, match='"sentence" with a text, or "words" with a list of words, but is'
        ) as error:
            predictor.predict_json(inputs)
        assert str(error.value).endswith(json.dumps(inputs))

    def test_a_long_wrong_input_is_cut_short_in_the_message(self, predictor):
        """Oracle: the length of the message."""
        with pytest.raises(ValueError) as error:
            predictor.predict_json({"text": "a" * 10_000})
        assert len(str(error.value)) < 400

    def test_a_line_that_is_not_json_is_named(self, predictor):
        """Oracle: the number of the line, its beginning, and what is wanted."""
        predictor.load_line('{"sentence": "fine"}\n')
        with pytest.raises(
            ValueError, match=r"line 2 .*\{\"sentence\": \"Jordan .*\"\}, but is 'Jordan beat Chelsea \.'"
        ):
            predictor.load_line("Jordan beat Chelsea .\n")
        assert predictor.load_line('{"words": []}\n') == {"words": []}

    def test_the_language_is_that_of_the_tokenizer(self, make_model):
        """Oracle: German rules, by which `z.B.` is one word."""
        tagger = make_model("ner", [])
        predictor = NerPredictor(tagger.model, tagger.reader, language="de")
        assert predictor.predict("z.B. hier")["words"] == ["z.B.", "hier"]

    def test_it_is_the_predictor_of_the_model(self, make_model):
        """Oracle: the names in AllenNLP's registry."""
        tagger = make_model("ner", [])
        assert Predictor.by_name(tagger.model.default_predictor) is NerPredictor
