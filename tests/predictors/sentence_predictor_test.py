import json
from typing import Any

import pytest
from allennlp.predictors import Predictor

from elmo_tasks.predictors import SentencePredictor
from elmo_tasks.tags import tags_to_spans
from tests.predictors.verb_finder_test import write_pos_archive
from tests.task_models import BOTH

SENTENCE = "Jordan doesn't like Chelsea."
WORDS = ["Jordan", "does", "n't", "like", "Chelsea", "."]
KEYS = {"ner": {"words", "tags", "spans"}, "sst": {"words", "label", "probabilities"}}


@pytest.fixture(params=KEYS)
def task(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make_predictor(make_model):
    def make(task: str, **kwargs: Any) -> SentencePredictor:
        of_task = make_model(task, BOTH)
        return SentencePredictor(of_task.model, of_task.reader, **kwargs)

    return make


class TestSentencePredictor:
    def test_a_sentence_is_tokenized(self, make_predictor, task):
        """Oracle: the words by hand; the model's own output for them, with the keys of its task."""
        predictor = make_predictor(task)
        output = predictor.predict_json({"sentence": SENTENCE})
        assert set(output) == KEYS[task]
        assert output["words"] == WORDS
        assert output == predictor.predict_json({"words": WORDS}) == predictor.predict(SENTENCE)
        assert json.loads(predictor.dump_line(output)) == output

    def test_words_are_taken_as_they_are(self, make_predictor):
        """Oracle: the words that came in."""
        words = ["Jordan doesn't", "like", "Chelsea."]
        assert make_predictor("ner").predict_json({"words": words})["words"] == words

    def test_a_batch_has_the_predictions_of_its_sentences(self, make_predictor, task):
        """Oracle: one sentence at a time, to five digits."""
        predictor = make_predictor(task)
        inputs = [{"sentence": SENTENCE}, {"words": ["x"]}, {"sentence": "A long , long and very dull film ."}]
        together = predictor.predict_batch_json(inputs)
        for alone, output in zip(map(predictor.predict_json, inputs), together, strict=True):
            scores = [
                [span.pop("score") for span in one.get("spans", [])] + [*one.pop("probabilities", {}).values()]
                for one in (alone, output)
            ]
            assert scores[0] == pytest.approx(scores[1], abs=1e-5)
            assert alone == output

    def test_sentences_without_words_have_empty_predictions(self, make_predictor, task):
        """Oracle: by hand, with the keys of other predictions; those next to them are what they are without them."""
        predictor = make_predictor(task)
        nothing = [{"sentence": ""}, {"sentence": " \t\u3000"}, {"words": []}]
        empty = {
            "ner": {"words": [], "tags": [], "spans": []},
            "sst": {"words": [], "label": None, "probabilities": {}},
        }
        assert predictor.predict_batch_json(nothing) == [empty[task]] * 3
        first, last = {"words": WORDS}, {"sentence": "x"}
        together = predictor.predict_batch_json([first, *nothing, last])
        assert together[1:4] == [empty[task]] * 3
        assert [together[0], together[4]] == predictor.predict_batch_json([first, last])
        assert set(empty[task]) == KEYS[task]

    def test_the_tags_of_a_file_do_not_change_its_predictions(self, make_predictor):
        """Oracle: the same words without tags, with those of the training, and with others."""
        predictor = make_predictor("ner")
        read = predictor._dataset_reader.text_to_instance
        known, other = ["B-PER", "O", "O", "O", "I-LOC", "O"], ["B-NEW", "I-NEW", "O", "O", "O", "O"]
        alone, *with_tags = (predictor.predict_instance(read(WORDS, tags)) for tags in (None, known, other))
        assert with_tags == [alone, alone]
        assert alone == predictor.predict_json({"words": WORDS})
        # Instances with and without gold may come together.
        assert len(predictor.predict_batch_instance([read(WORDS), read(WORDS, known), read(WORDS, other)])) == 3

    def test_spans_say_what_the_tags_say(self, make_predictor):
        """Oracle: `tags_to_spans`, and the words between first and last."""
        predictor = make_predictor("ner")
        spans = []
        for words in (WORDS, ["Ann", "Lee", "of", "New", "York"], ["x"]):
            output = predictor.predict_json({"words": words})
            spans += output["spans"]
            found = [(span["label"], span["start"], span["end"]) for span in output["spans"]]
            assert found == tags_to_spans(output["tags"])
            assert [span["text"] for span in output["spans"]] == [" ".join(words[s : e + 1]) for _, s, e in found]
        assert spans
        assert all(0.0 < span["score"] < 1.0 for span in spans)

    def test_the_label_is_the_most_probable(self, make_predictor):
        """Oracle: the largest of the five probabilities, which sum to 1."""
        output = make_predictor("sst").predict(SENTENCE)
        assert set(output["probabilities"]) == set("01234")
        assert sum(output["probabilities"].values()) == pytest.approx(1.0)
        assert output["label"] == max(output["probabilities"], key=output["probabilities"].__getitem__)

    @pytest.mark.parametrize(
        "inputs", [{"sentence": WORDS}, {"sentence": None}, {"words": SENTENCE}, {"words": [1]}], ids=json.dumps
    )
    def test_other_inputs_are_errors(self, make_predictor, inputs):
        """Oracle: the message says the rule and the input."""
        with pytest.raises(
            ValueError, match=r'"sentence" with a text, or "words" with a list of words .*, but'
        ) as error:
            make_predictor("ner").predict_json(inputs)
        assert str(error.value).endswith(json.dumps(inputs))

    def test_a_key_beyond_the_words_is_an_error(self, make_predictor):
        """Oracle: the key in the message."""
        with pytest.raises(ValueError, match='may have the key "sentence", but has "tags", which would be ignored'):
            make_predictor("ner").predict_json({"sentence": SENTENCE, "tags": ["O"]})

    def test_the_language_is_that_of_the_tokenizer(self, make_predictor):
        """Oracle: German rules, by which `z.B.` is one word."""
        assert make_predictor("ner", language="de").predict("z.B. hier")["words"] == ["z.B.", "hier"]

    def test_it_is_the_predictor_of_an_archive_that_names_none(self, environment, tmp_path):
        """Oracle: the words and tags by hand; the tagger knows them by heart, and no numbers come."""
        tags = {"Anna": "PROPN", "sings": "VERB", "old": "ADJ", "songs": "NOUN"}
        predictor = Predictor.from_path(write_pos_archive(tmp_path / "run", tags))
        assert type(predictor) is SentencePredictor
        lines = [{"sentence": "Anna sings old songs"}, {"sentence": " "}, {"words": ["songs"]}]
        assert predictor.predict_batch_json(lines) == [
            {"words": [*tags], "tags": [*tags.values()]},
            {"words": [], "tags": []},
            {"words": ["songs"], "tags": ["NOUN"]},
        ]

    def test_it_is_the_predictor_of_its_models(self, make_predictor, task):
        """Oracle: the names in AllenNLP's registry; the example is a line that it takes."""
        predictor = make_predictor(task)
        assert Predictor.by_name(predictor._model.default_predictor) is SentencePredictor
        assert predictor.predict_json(predictor.example)["words"] == ["Jordan", "beat", "Chelsea", "."]
