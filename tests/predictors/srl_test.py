import json
from pathlib import Path

import pytest
from allennlp.predictors import Predictor

from elmo_tasks.predictors import SrlPredictor
from tests.predictors.verb_finder_test import write_spacy_model
from tests.task_models import TaskModel

WORDS = ["Anna", "eats", "and", "drinks", "."]


@pytest.fixture
def labeler(make_model) -> TaskModel:
    return make_model("srl", ["input"])


@pytest.fixture
def predictor(labeler: TaskModel, tmp_path: Path) -> SrlPredictor:
    folder = write_spacy_model(tmp_path / "spacy", {"eats": "VERB", "drinks": "VERB", "will": "AUX"})
    return SrlPredictor(labeler.model, labeler.reader, spacy_model=folder)


@pytest.fixture
def without_tagger(labeler: TaskModel) -> SrlPredictor:
    return SrlPredictor(labeler.model, labeler.reader, spacy_model="no_such_model")


def verbs_of(output: dict) -> list[str]:
    return [verb["verb"] for verb in output["verbs"]]


class TestSrlPredictor:
    def test_the_output_has_the_form_of_allennlp(self, predictor):
        """Oracle: the keys of AllenNLP's predictor, and the model's own output for each predicate."""
        output = predictor.predict_json({"words": WORDS, "predicates": [3, 1]})
        assert set(output) == {"words", "verbs"}
        assert output["words"] == WORDS
        assert verbs_of(output) == ["drinks", "eats"]
        for verb, predicate in zip(output["verbs"], (3, 1), strict=True):
            indicator = [int(index == predicate) for index in range(5)]
            instance = predictor._dataset_reader.text_to_instance(WORDS, indicator)
            alone = predictor.predict_instance(instance)
            assert set(verb) == {"verb", "description", "tags"}
            assert verb == {key: alone[key] for key in verb}
            assert set(alone) == {"words", "verb", "description", "tags"}

    def test_the_verbs_of_a_sentence_are_found(self, predictor):
        """Oracle: the words and verbs by hand; auxiliaries count, as in AllenNLP's predictor."""
        output = predictor.predict("Anna eats and won't drink, but Tom drinks.")
        assert output["words"] == ["Anna", "eats", "and", "wo", "n't", "drink", ",", "but", "Tom", "drinks", "."]
        assert verbs_of(output) == ["eats", "drinks"]
        assert verbs_of(predictor.predict_json({"words": ["She", "will", "."]})) == ["will"]

    def test_sentences_without_predicates_have_no_verbs(self, predictor):
        """Oracle: by hand; the model has nothing to do."""
        lines = [{"sentence": "No."}, {"sentence": "  "}, {"words": []}, {"words": ["a"], "predicates": []}]
        words = [["No", "."], [], [], ["a"]]
        assert predictor.predict_batch_json(lines) == [{"words": row, "verbs": []} for row in words]

    def test_a_batch_has_the_predictions_of_its_sentences(self, predictor):
        """Oracle: one line at a time; lines have none, one, two and three predicates."""
        lines = [
            {"words": WORDS, "predicates": [1, 3, 0]},
            {"sentence": "No."},
            {"sentence": "Anna eats."},
            {"words": WORDS},
        ]
        together = predictor.predict_batch_json(lines)
        assert together == [predictor.predict_json(line) for line in lines]
        assert [len(output["verbs"]) for output in together] == [3, 0, 1, 2]

    def test_an_empty_batch_has_no_predictions(self, predictor):
        """Oracle: by hand."""
        assert predictor.predict_batch_json([]) == []

    def test_predicates_that_are_given_need_no_tagger(self, without_tagger):
        """Oracle: the verb."""
        assert verbs_of(without_tagger.predict_json({"words": WORDS, "predicates": [1]})) == ["eats"]

    @pytest.mark.parametrize("inputs", [{"sentence": "Anna eats."}, {"words": WORDS}], ids=json.dumps)
    def test_without_a_tagger_all_remedies_are_named(self, without_tagger, inputs):
        """Oracle: the message."""
        with pytest.raises(
            Exception, match=r"'no_such_model' is not installed.*spacy download.*pos_model.*\"predicates\""
        ):
            without_tagger.predict_json(inputs)

    @pytest.mark.parametrize(
        "inputs",
        [
            {"sentence": WORDS},
            {"words": "Anna eats."},
            {"words": [1, 2], "predicates": [0]},
            {"words": WORDS, "predicates": 1},
            {"words": WORDS, "predicates": ["eats"]},
            {"words": WORDS, "predicates": [True]},
            {"words": WORDS, "predicates": [1.0]},
        ],
        ids=json.dumps,
    )
    def test_other_inputs_are_errors(self, predictor, inputs):
        """Oracle: the message says the rule and the input."""
        with pytest.raises(ValueError, match=r'"sentence" with a text, or "words" .* "predicates" .*, but is') as error:
            predictor.predict_json(inputs)
        assert str(error.value).endswith(json.dumps(inputs))

    @pytest.mark.parametrize(("words", "index"), [(WORDS, 5), (WORDS, -1), ([], 0)])
    def test_a_predicate_outside_of_its_sentence_is_an_error(self, predictor, words, index):
        """Oracle: the message says rule and value."""
        with pytest.raises(ValueError, match=rf"counted from 0 and below {len(words)}, .* but one is {index}: "):
            predictor.predict_json({"words": words, "predicates": [0, index] if words else [index]})

    def test_predicates_of_a_sentence_are_an_error(self, predictor):
        """Oracle: the key and the remedy in the message."""
        with pytest.raises(ValueError, match=r'but has "predicates", .* give "words" in place of "sentence"'):
            predictor.predict_json({"sentence": "Anna eats.", "predicates": [1]})

    def test_half_a_pair_of_utf_16_is_an_error(self, predictor):
        """Oracle: the message; of words too, which no tokenizer reads."""
        with pytest.raises(ValueError, match=r"must be Unicode, but has '\\ud800'"):
            predictor.predict_json({"words": ["Anna", "\ud800"], "predicates": [0]})

    def test_a_line_with_one_predicate_is_an_instance(self, predictor):
        """Oracle: the reader's; AllenNLP's interpreters ask for it."""
        instance = predictor._json_to_instance({"words": WORDS, "predicates": [1]})
        assert instance["metadata"]["words"] == WORDS and instance["metadata"]["verb"] == "eats"
        for inputs, n in (({"words": WORDS}, 2), ({"sentence": "No."}, 0)):
            with pytest.raises(ValueError, match=f"must have one predicate, but the line has {n}: give one as"):
                predictor._json_to_instance(inputs)

    def test_the_output_is_json(self, predictor):
        """Oracle: the output after `json`."""
        output = predictor.predict_json({"words": ["Encyclopædia", "😀"], "predicates": [0]})
        assert json.loads(predictor.dump_line(output)) == output

    def test_it_is_the_predictor_of_the_model(self, labeler):
        """Oracle: the names in AllenNLP's registry."""
        assert Predictor.by_name(labeler.model.default_predictor) is SrlPredictor
