import pytest

from elmo_tasks.predictors import PosPredictor
from tests.predictors.verb_finder_test import write_pos_archive

TAGS = {"Anna": "PROPN", "sings": "VERB", "old": "ADJ", "songs": "NOUN"}


@pytest.fixture
def predictor(environment, tmp_path) -> PosPredictor:
    """Of AllenNLP's `simple_tagger`, which knows the four words by heart."""
    from allennlp.models.archival import load_archive

    from elmo_tasks.data import PosReader

    model = load_archive(write_pos_archive(tmp_path / "run", TAGS)).model
    return PosPredictor(model, PosReader())


class TestPosPredictor:
    def test_words_and_tags_come_out_and_no_numbers(self, predictor):
        """Oracle: by hand."""
        expected = {"words": ["Anna", "sings", "songs"], "tags": ["PROPN", "VERB", "NOUN"]}
        assert predictor.predict("Anna sings songs") == expected
        assert predictor.predict_json({"words": expected["words"]}) == expected

    def test_padding_has_no_tags(self, predictor):
        """Oracle: a batch of sentences that are not of one length: a tag for each word."""
        outputs = predictor.predict_batch_json([{"sentence": "Anna sings old songs"}, {"sentence": "songs"}])
        assert [output["tags"] for output in outputs] == [["PROPN", "VERB", "ADJ", "NOUN"], ["NOUN"]]

    def test_it_is_registered(self, environment):
        """Oracle: AllenNLP's registry."""
        from allennlp.predictors import Predictor

        assert Predictor.by_name("elmo_pos") is PosPredictor
