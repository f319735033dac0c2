"""Tests of what each predictor adds to the output of its model."""

import numpy as np
import pytest
import spacy

from elmo_tasks.data import PosReader
from elmo_tasks.predictors import PosPredictor
from elmo_tasks.predictors.pos_tagger import PosTagger
from elmo_tasks.text import in_nfc
from tests.task_models import PLACES

# In NFD, a text has more characters than the words that the model reads.
TEXT = "Mr. Jorda\u0301n  doesn't like Chelsea.\nHe said so!"


def text_at(text: str, place: dict) -> str:
    return " ".join(in_nfc(text[place["start_char"] : place["end_char"]]).split())


class TestPlaces:
    def test_places_of_entities(self, made_predictor):
        def tag_single_words(model):
            for number, tag in model.vocab.get_index_to_token_vocabulary("labels").items():
                model.tag_projection.bias.data[number] = 5.0 * tag.startswith("U-")

        predictor = made_predictor("ner", change=tag_single_words)
        spans = predictor.predict(TEXT)["spans"]
        assert spans
        for span in spans:
            assert text_at(TEXT, span) == span["text"]
        for span in predictor.predict_tokenized(TEXT.split())["spans"]:
            assert "start_char" not in span

    def test_places_of_arguments(self, made_predictor):
        predictor = made_predictor("srl")
        output = predictor.predict("Anna  eats an apple.")
        (verb,) = output["verbs"]
        assert verb["verb"] == "eats"
        for span in verb["spans"]:
            words = "".join(output["words"][span["start"] : span["end"] + 1])
            assert text_at("Anna  eats an apple.", span).replace(" ", "") == words

    def test_places_of_mentions(self, made_predictor):
        def link(model):
            model.antecedent_scorer.rest[-1].bias.data.fill_(5.0)

        predictor = made_predictor("coref", change=link)
        output = predictor.predict(TEXT)
        assert output["clusters"] and output["document"][:4] == ["Mr.", "Jordán", "does", "n't"]
        for mentions, places in zip(output["clusters"], output["places"], strict=True):
            for (start, end), place in zip(mentions, places, strict=True):
                words = "".join(output["document"][start : end + 1])
                assert text_at(TEXT, place).replace(" ", "") == words
        tokenized = predictor.predict_tokenized(output["document"])
        assert tokenized["clusters"] == output["clusters"] and "places" not in tokenized

    def test_places_of_answers(self, made_predictor):
        output = made_predictor("squad").predict("Who  said so?", TEXT)
        assert TEXT[output["start_char"] : output["end_char"]] == output["best_span_str"]


class TestPartsOfSpeech:
    @pytest.mark.parametrize(("tags", "expected"), [("upos", ("A|B", None)), ("both", ("A", "B"))])
    def test_a_tag_of_two_columns_is_divided(self, make_model, tags, expected):
        model = make_model("pos_tagger", PLACES["none"]).model
        predictor = PosPredictor(model, PosReader(tags=tags))
        places = [{"start_char": 0, "end_char": 3}]
        prediction = {"tags": ["A|B"], "probabilities": [1.0], "places": places}
        (word,) = predictor.result([prediction], "Yes")
        assert (word["text"], word["label"], word.get("xpos")) == ("Yes", *expected)


class TestCorefResolved:
    def test_mentions_are_replaced_by_the_first(self, made_predictor, monkeypatch):
        predictor = made_predictor("coref")
        text = "Ann Lee  sang. She lost her hat and his."
        clusters = [[[0, 1], [4, 4], [9, 9]]]
        finish = predictor.finish

        def finish_with_clusters(instance, output):
            return finish(instance, output | {"clusters": clusters})

        monkeypatch.setattr(predictor, "finish", finish_with_clusters)
        resolved = "Ann Lee  sang. Ann Lee lost her hat and Ann Lee's."
        assert predictor.coref_resolved(text) == resolved


class TestSrlPredictor:
    def test_there_is_a_prediction_for_each_predicate(self, made_predictor):
        words = ["Anna", "sings", "and", "eats"]
        output = made_predictor("srl").predict_json({"words": words, "predicates": [3, 1]})
        assert output["words"] == words
        assert [verb["verb"] for verb in output["verbs"]] == ["eats", "sings"]
        for verb in output["verbs"]:
            assert len(verb["tags"]) == len(verb["probabilities"]) == 4
            assert all(0.0 < probability <= 1.0 for probability in verb["probabilities"])

    @pytest.mark.parametrize("predicates", [[-1], [2]])
    def test_a_predicate_beyond_the_words_is_an_error(self, made_predictor, predicates):
        line = {"words": ["Anna", "sings"], "predicates": predicates}
        with pytest.raises(ValueError, match="predicates"):
            made_predictor("srl").predict_json(line)


class TestSnliPredictor:
    def test_attention_is_shown_on_request(self, made_predictor):
        pair = ("Two dogs run .", "Animals move .")
        assert "attention" not in made_predictor("snli").predict(*pair)
        attention = made_predictor("snli", attention=True).predict(*pair)["attention"]
        assert np.shape(attention["premise"]) == (4, 3)
        assert np.shape(attention["hypothesis"]) == (3, 4)


class TestSpeakers:
    def test_they_and_the_genre_reach_the_model(self, made_predictor):
        line = {"sentences": [["Yes", "."], ["No"]], "speakers": ["A", "B"], "genre": "tc"}
        ((instance,),) = made_predictor("coref").read_line(line).parts
        metadata = instance["metadata"].metadata
        assert metadata["speakers"] == [["A", "A"], ["B"]] and metadata["genre"] == "tc"


class TestVerbs:
    def test_a_model_of_spacy_finds_verbs_and_auxiliaries(self, made_predictor, tmp_path):
        nlp = spacy.blank("en")
        ruler = nlp.add_pipe("attribute_ruler")
        for word, tag in {"can": "AUX", "sing": "VERB", "songs": "NOUN"}.items():
            ruler.add([[{"ORTH": word}]], {"POS": tag})
        nlp.to_disk(tmp_path / "model")
        predictor = made_predictor("srl", spacy_model=str(tmp_path / "model"))
        assert verbs(predictor, "Anna can sing songs", "", "songs") == [["can", "sing"], [], []]

    def test_the_included_tagger_finds_them_in_one_pass_over_pieces(
        self, made_predictor, monkeypatch
    ):
        lengths = []
        tag = PosTagger.__call__

        def note_and_tag(tagger, sentences):
            lengths.append([len(words) for words in sentences])
            return tag(tagger, sentences)

        monkeypatch.setattr(PosTagger, "__call__", note_and_tag)
        sentences = ["Anna can sing songs", "dogs " * 98 + "sing", "The old dog was sleeping ."]
        anna, _, dog = verbs(made_predictor("srl"), *sentences)
        assert anna == ["can", "sing"]
        assert dog == ["was", "sleeping"]
        assert lengths == [[4, 96, 3, 6]]


def verbs(predictor, *sentences: str) -> list[list[str]]:
    """The predicates of each sentence."""
    lines = [{"words": sentence.split()} for sentence in sentences]
    predicates = []
    for prediction in predictor.predict_batch_json(lines):
        predicates.append([verb["verb"] for verb in prediction["verbs"]])
    return predicates
