import json

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.predictors import Predictor

from elmo_tasks.predictors import CorefPredictor

DOCUMENT = "Mr. Jordan doesn't like Chelsea.  He said so!\n\nWho asked him?"
SENTENCES = [
    ["Mr.", "Jordan", "does", "n't", "like", "Chelsea", "."],
    ["He", "said", "so", "!"],
    ["Who", "asked", "him", "?"],
]


@pytest.fixture
def predictor(make_model) -> CorefPredictor:
    resolver = make_model("coref", ["input"])
    return CorefPredictor(resolver.model, resolver.reader)


class TestCorefPredictor:
    def test_a_text_is_cut_into_sentences_and_words(self, predictor):
        """Oracle: the words by hand; the model's own output for them."""
        output = predictor.predict_json({"document": DOCUMENT})
        assert set(output) == {"document", "part", "sentences", "clusters", "texts"}
        assert output["sentences"] == SENTENCES
        assert output == predictor.predict_json({"sentences": SENTENCES}) == predictor.predict(DOCUMENT)

    def test_texts_are_the_words_of_the_clusters(self, predictor):
        """Oracle: the words between first and last."""
        predictor._model.antecedent_scorer.rest[-1].bias.data.fill_(5.0)
        output = predictor.predict(DOCUMENT)
        words = [word for sentence in SENTENCES for word in sentence]
        assert output["clusters"]
        for mentions, texts in zip(output["clusters"], output["texts"], strict=True):
            assert texts == [" ".join(words[start : end + 1]) for start, end in mentions]

    def test_speakers_and_genre_reach_the_model(self, predictor):
        """Oracle: the metadata of the reader."""
        inputs = {"sentences": SENTENCES, "speakers": ["A", "B", "A"], "genre": "tc"}
        metadata = predictor._json_to_instance(inputs)["metadata"].metadata
        assert metadata["speakers"] == [["A"] * 7, ["B"] * 4, ["A"] * 4]
        assert metadata["genre"] == "tc"
        assert "clusters" not in metadata

    def test_a_batch_has_the_predictions_of_its_documents(self, predictor):
        """Oracle: one document at a time; without words there are no clusters."""
        inputs = [{"document": DOCUMENT}, {"document": " \n "}, {"sentences": []}, {"sentences": [[], ["Yes"]]}]
        together = predictor.predict_batch_json(inputs)
        assert together == [predictor.predict_json(one) for one in inputs]
        assert [output["clusters"] for output in together[1:]] == [[], [], []]
        assert together[1] == {"document": "", "part": 0, "sentences": [], "clusters": [], "texts": []}

    def test_the_output_is_json(self, predictor):
        """Oracle: the output after `json`."""
        output = predictor.predict_json({"document": "Encyclopædia 😀. It is."})
        assert json.loads(predictor.dump_line(output)) == output

    @pytest.mark.parametrize(
        "inputs",
        [{}, {"document": SENTENCES}, {"sentences": DOCUMENT}, {"sentences": [[1]]}],
        ids=json.dumps,
    )
    def test_other_inputs_are_errors(self, predictor, inputs):
        """Oracle: the message says the rule and the input."""
        with pytest.raises(ValueError, match=r'"document" with a text, or "sentences" with lists .* but is') as error:
            predictor.predict_json(inputs)
        assert str(error.value).endswith(json.dumps(inputs))

    def test_speakers_without_sentences_are_an_error(self, predictor):
        """Oracle: the key and the remedy in the message."""
        with pytest.raises(ValueError, match=r'but has "speakers", .* give "sentences" in place of "document"'):
            predictor.predict_json({"document": DOCUMENT, "speakers": ["A", "B", "A"]})

    @pytest.mark.parametrize("speakers", ["AB", ["A", "B"], [1, 2, 3], [["A"], ["B"], ["C"]]], ids=json.dumps)
    def test_other_speakers_are_errors(self, predictor, speakers):
        """Oracle: the message says how many there must be."""
        with pytest.raises(ValueError, match='"speakers" must be a list of names, one for each of the 3 sentences'):
            predictor.predict_json({"sentences": SENTENCES, "speakers": speakers})

    def test_another_genre_is_an_error(self, predictor):
        """Oracle: the message."""
        with pytest.raises(ValueError, match='"genre" must be a text, but is 7'):
            predictor.predict_json({"document": DOCUMENT, "genre": 7})

    def test_the_language_is_that_of_the_rules(self, make_model):
        """Oracle: German rules, by which `z.B.` is one word; a language that spaCy does not know is an error."""
        resolver = make_model("coref", [])
        predictor = CorefPredictor(resolver.model, resolver.reader, language="de")
        assert predictor.predict("Hier z.B. ist es.")["sentences"] == [["Hier", "z.B.", "ist", "es", "."]]
        with pytest.raises(ConfigurationError, match=r"must be a code that spaCy knows.*'xyz'"):
            CorefPredictor(resolver.model, resolver.reader, language="xyz")

    def test_it_is_the_predictor_of_the_model(self, make_model):
        """Oracle: the names in AllenNLP's registry."""
        assert Predictor.by_name(make_model("coref", []).model.default_predictor) is CorefPredictor
