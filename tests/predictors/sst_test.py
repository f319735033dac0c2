import json

import pytest
from allennlp.predictors import Predictor

from elmo_tasks.predictors import SstPredictor
from tests.task_models import BOTH

SENTENCE = "It doesn't work."
WORDS = ["It", "does", "n't", "work", "."]


@pytest.fixture
def predictor(make_model) -> SstPredictor:
    classifier = make_model("sst", BOTH)
    return SstPredictor(classifier.model, classifier.reader)


class TestSstPredictor:
    def test_it_says_the_sentiment_of_a_sentence(self, predictor):
        """Oracle: the keys; the most probable of the five labels; the same sentence as words."""
        output = predictor.predict(SENTENCE)
        assert set(output) == {"words", "label", "probabilities"}
        assert output["words"] == WORDS
        assert set(output["probabilities"]) == set("01234")
        assert sum(output["probabilities"].values()) == pytest.approx(1.0)
        assert output["label"] == max(output["probabilities"], key=output["probabilities"].__getitem__)
        assert output == predictor.predict_json({"words": WORDS})
        assert json.loads(predictor.dump_line(output)) == output

    def test_a_batch_has_the_predictions_of_its_sentences(self, predictor):
        """Oracle: one sentence at a time."""
        inputs = [{"sentence": SENTENCE}, {"words": ["x"]}, {"sentence": "A long , long and very dull film ."}]
        together = predictor.predict_batch_json(inputs)
        for alone, output in zip(map(predictor.predict_json, inputs), together, strict=True):
            assert alone.pop("probabilities") == pytest.approx(output.pop("probabilities"), abs=1e-5)
            assert alone == output

    @pytest.mark.parametrize("inputs", [{"sentence": " "}, {"words": []}])
    def test_a_sentence_without_words_is_an_error(self, predictor, inputs):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="the input: a sentence must have at least one word, but has none"):
            predictor.predict_json(inputs)

    def test_it_is_the_predictor_of_the_model(self, predictor):
        """Oracle: the names in AllenNLP's registry; the example is a line that it takes."""
        assert Predictor.by_name(predictor._model.default_predictor) is SstPredictor
        assert predictor.predict_json(predictor.example)["words"][1] == "'s"
