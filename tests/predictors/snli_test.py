import json

import pytest
from allennlp.predictors import Predictor

from elmo_tasks.predictors import SnliPredictor
from tests.task_models import BOTH

PAIR = {"sentence1": "A man isn't here.", "sentence2": "It rains."}
WORDS = (["A", "man", "is", "n't", "here", "."], ["It", "rains", "."])


@pytest.fixture
def make_predictor(make_model):
    classifier = make_model("snli", BOTH)

    def make(**kwargs: bool) -> SnliPredictor:
        return SnliPredictor(classifier.model, classifier.reader, **kwargs)

    return make


@pytest.fixture
def predictor(make_predictor) -> SnliPredictor:
    return make_predictor()


class TestSnliPredictor:
    def test_it_says_what_one_sentence_is_to_the_other(self, predictor):
        """Oracle: the keys, the words by hand, the most probable of the three labels."""
        output = predictor.predict_json(PAIR)
        assert set(output) == {"label", "probabilities", "premise_tokens", "hypothesis_tokens"}
        assert (output["premise_tokens"], output["hypothesis_tokens"]) == WORDS
        assert set(output["probabilities"]) == {"entailment", "neutral", "contradiction"}
        assert sum(output["probabilities"].values()) == pytest.approx(1.0)
        assert output["label"] == max(output["probabilities"], key=output["probabilities"].__getitem__)
        assert json.loads(predictor.dump_line(output)) == output

    def test_a_pair_can_be_given_in_three_ways(self, predictor):
        """Oracle: the same prediction."""
        expected = predictor.predict_json(PAIR)
        names = {"premise": PAIR["sentence1"], "hypothesis": PAIR["sentence2"]}
        assert predictor.predict_json(names) == expected
        assert predictor.predict(*PAIR.values()) == expected
        assert predictor.predict(*reversed(PAIR.values())) != expected

    def test_a_batch_has_the_predictions_of_its_pairs(self, make_predictor):
        """Oracle: one pair at a time."""
        inputs = [PAIR, {"premise": "x", "hypothesis": "Two very long dogs run along a beach ."}]
        predictor = make_predictor(attention=True)
        together = predictor.predict_batch_json(inputs)
        for alone, output in zip(map(predictor.predict_json, inputs), together, strict=True):
            assert alone.pop("probabilities") == pytest.approx(output.pop("probabilities"), abs=1e-5)
            for one, other in zip(alone.pop("attention").items(), output.pop("attention").items(), strict=True):
                assert one[0] == other[0]
                assert [weight for row in one[1] for weight in row] == pytest.approx(
                    [weight for row in other[1] for weight in row], abs=1e-5
                )
            assert alone == output

    def test_attention_is_put_out_when_it_is_asked_for(self, make_predictor):
        """Oracle: a row a word, a weight for each word of the other sentence, by hand; the sum of each row is 1."""
        output = make_predictor(attention=True).predict_json(PAIR)
        for name, n_rows, n_columns in (("premise", 6, 3), ("hypothesis", 3, 6)):
            rows = output["attention"][name]
            assert [len(row) for row in rows] == [n_columns] * n_rows
            assert [sum(row) for row in rows] == pytest.approx([1.0] * n_rows, abs=1e-5)
        assert json.loads(json.dumps(output)) == output

    @pytest.mark.parametrize(
        "inputs",
        [
            {},
            {"sentence1": "A man"},
            {"sentence1": "A man", "sentence2": None},
            {"premise": ["A", "man"], "hypothesis": "A woman"},
        ],
        ids=json.dumps,
    )
    def test_other_inputs_are_errors(self, predictor, inputs):
        """Oracle: the message says the rule and the input."""
        with pytest.raises(
            ValueError, match='under "sentence1" and one under "sentence2", or under "premise"'
        ) as error:
            predictor.predict_json(inputs)
        assert str(error.value).endswith(json.dumps(inputs))

    @pytest.mark.parametrize("line", [{**PAIR, "gold_label": "-"}, {"sentence1": "A man", "hypothesis": "A woman"}])
    def test_other_keys_are_errors(self, predictor, line):
        """Oracle: the key in the message, and how SNLI's own files are read."""
        with pytest.raises(ValueError, match=rf'but has "{[*line][-1]}", .* with --use-dataset-reader'):
            predictor.predict_json(line)

    def test_a_pair_without_words_on_one_side_has_no_label(self, make_predictor):
        """Oracle: by hand, with the keys of other predictions; those next to them are what they are without them."""
        predictor = make_predictor(attention=True)
        lines = [{"sentence1": "", "sentence2": "It rains."}, {"premise": "A man isn't", "hypothesis": " \n"}]
        found = predictor.predict_batch_json([PAIR, *lines, {"sentence1": "", "sentence2": ""}, PAIR])
        none = {"label": None, "probabilities": {}}
        sides = ([], WORDS[1]), (["A", "man", "is", "n't"], []), ([], [])
        assert found[1:4] == [
            {
                **none,
                "premise_tokens": premise,
                "hypothesis_tokens": hypothesis,
                "attention": {"premise": [[]] * len(premise), "hypothesis": [[]] * len(hypothesis)},
            }
            for premise, hypothesis in sides
        ]
        assert [found[0], found[4]] == predictor.predict_batch_json([PAIR, PAIR])
        assert set(found[0]) == set(found[1])
        assert "attention" not in make_predictor().predict("", "")

    def test_it_is_the_predictor_of_the_model(self, predictor):
        """Oracle: the names in AllenNLP's registry; the example is a line that it takes."""
        assert Predictor.by_name(predictor._model.default_predictor) is SnliPredictor
        assert predictor.predict_json(predictor.example)["hypothesis_tokens"] == ["Animals", "move", "."]
