import json

import pytest
from allennlp.predictors import Predictor

from elmo_tasks.predictors import SquadPredictor
from tests.task_models import BOTH

QUESTION = "Who beat Chelsea?"
PASSAGE = "Jordan doesn't beat Chelsea in  Paris."


@pytest.fixture
def predictor(make_model) -> SquadPredictor:
    answerer = make_model("squad", BOTH)
    return SquadPredictor(answerer.model, answerer.reader)


class TestSquadPredictor:
    def test_an_answer_is_a_part_of_the_passage(self, predictor):
        """Oracle: the tokens by hand; the text between the tokens of the span."""
        output = predictor.predict(QUESTION, PASSAGE)
        assert set(output) == {"id", "best_span", "best_span_str", "score", "question_tokens", "passage_tokens"}
        assert output["id"] == ""
        assert output["question_tokens"] == ["Who", "beat", "Chelsea", "?"]
        assert output["passage_tokens"] == ["Jordan", "does", "n't", "beat", "Chelsea", "in", "Paris", "."]
        first, last = output["best_span"]
        assert output["best_span_str"] in PASSAGE
        answer = "".join(output["best_span_str"].split())
        assert answer == "".join(output["passage_tokens"][first : last + 1])
        assert 0.0 < output["score"] < 1.0

    def test_the_passage_may_be_called_context_and_the_question_may_have_an_id(self, predictor):
        """Oracle: the same question without."""
        output = predictor.predict_json({"question": QUESTION, "context": PASSAGE, "id": "q7"})
        assert output == {**predictor.predict(QUESTION, PASSAGE), "id": "q7"}

    def test_a_batch_has_the_predictions_of_its_questions(self, predictor):
        """Oracle: one question at a time."""
        inputs = [
            {"question": QUESTION, "passage": PASSAGE, "id": "1"},
            {"question": "x", "passage": "y"},
            {"question": "Where is it, and where has it been before?", "context": "In Rome."},
        ]
        together = predictor.predict_batch_json(inputs)
        for alone, output in zip(map(predictor.predict_json, inputs), together, strict=True):
            assert alone.pop("score") == pytest.approx(output.pop("score"), abs=1e-5)
            assert alone == output

    def test_the_output_is_json(self, predictor):
        """Oracle: the output after `json`."""
        output = predictor.predict("Encyclopædia 😀?", "😀 is one.")
        assert json.loads(predictor.dump_line(output)) == output

    @pytest.mark.parametrize(
        "inputs",
        [
            {"question": QUESTION},
            {"passage": PASSAGE},
            {"question": QUESTION, "passage": [PASSAGE]},
            {"question": None, "passage": PASSAGE},
            {"question": QUESTION, "passage": PASSAGE, "id": 7},
        ],
        ids=json.dumps,
    )
    def test_other_inputs_are_errors(self, predictor, inputs):
        """Oracle: the message says the rule and the input."""
        with pytest.raises(ValueError, match=r'must have the keys "question" and "passage", .*but is') as error:
            predictor.predict_json(inputs)
        assert str(error.value).endswith(json.dumps(inputs))

    def test_without_a_question_or_a_passage_the_answer_is_empty(self, predictor):
        """Oracle: by hand, with the keys of other predictions; those next to them are what they are without them."""
        whole = {"question": QUESTION, "passage": PASSAGE}
        lines = [{"question": " ", "context": "In  Paris.", "id": "q7"}, {"question": "Who?", "passage": "\n"}]
        found = predictor.predict_batch_json([whole, *lines, whole])
        none = {"best_span_str": "", "best_span": None, "score": None}
        assert found[1:3] == [
            {"id": "q7", "question_tokens": [], "passage_tokens": ["In", "Paris", "."], **none},
            {"id": "", "question_tokens": ["Who", "?"], "passage_tokens": [], **none},
        ]
        assert [found[0], found[3]] == predictor.predict_batch_json([whole, whole])
        assert set(found[0]) == set(found[1])

    @pytest.mark.parametrize("key", ["context", "answers"])
    def test_other_keys_are_errors(self, predictor, key):
        """Oracle: the key in the message."""
        with pytest.raises(ValueError, match=rf'"passage", "question", "id", but has "{key}", which would be ignored'):
            predictor.predict_json({"question": QUESTION, "passage": PASSAGE, key: PASSAGE})

    def test_it_is_the_predictor_of_the_model(self, predictor):
        """Oracle: the names in AllenNLP's registry."""
        assert Predictor.by_name(predictor._model.default_predictor) is SquadPredictor
