"""How much each word matters for each thing that a task finds."""

import pytest

from elmo_tasks import TrainedTask
from elmo_tasks.text import in_nfc
from tests.predictors.trained_task_test import TEXTS
from tests.results import approximately


@pytest.fixture(scope="module")
def find_names() -> TrainedTask:
    return TrainedTask("ner", device="cpu")


class TestExplain:
    @pytest.mark.parametrize("task", TEXTS)
    def test_what_is_found_has_a_weight_for_each_word(self, archive, task):
        trained = TrainedTask(archive(task, "both", 3))
        result = trained(*TEXTS[task])
        if task in ("ner", "srl"):
            decisions = result
        elif task == "coref":
            decisions = result["chains"]
        else:
            decisions = [result]
        explanations = trained.explain(*TEXTS[task])
        assert explanations
        assert [explanation["found"] for explanation in explanations] == approximately(decisions)
        inputs = trained.predictor.inputs if len(TEXTS[task]) > 1 else [None]
        texts = dict(zip(inputs, TEXTS[task], strict=True))
        for explanation in explanations:
            total = sum(word["weight"] for word in explanation["words"])
            assert total == pytest.approx(len(texts), abs=1e-3)
            for word in explanation["words"]:
                text = texts[word.get("input")][word["start"] : word["end"]]
                # The text has a decomposed letter; words are in NFC.
                assert in_nfc(text) == word["text"]

    def test_a_name_depends_on_its_own_words(self, find_names):
        """Not on the other names of the sentence."""
        explanations = find_names.explain("Angela Merkel met Tim Cook in Berlin. It rained.")
        weights = {}
        for explanation in explanations:
            name = explanation["found"]["text"]
            weights[name] = {word["text"]: word["weight"] for word in explanation["words"]}
        assert list(weights) == ["Angela Merkel", "Tim Cook", "Berlin"]
        for name, other in (("Angela Merkel", "Tim Cook"), ("Tim Cook", "Angela Merkel")):
            weight_of_name = sum(weights[name][word] for word in name.split())
            weight_for_other = sum(weights[other][word] for word in name.split())
            assert weight_of_name > 0.5 > 2 * weight_for_other

    def test_the_picture_has_a_row_for_each_name(self, find_names):
        html = find_names.render_explanation("Angela <b> met Tim Cook in Berlin. He left Rome.")
        assert html.count("<tr>") == 4 + 2
        assert "<th>Tim Cook (PERSON)</th>" in html
        assert "<b>" not in html
        assert find_names.render_explanation("It rained all day.") == ""

    def test_a_text_without_names_has_none(self, find_names):
        assert find_names.explain("It rained all day.") == [] == find_names.explain(" ")

    def test_a_list_of_texts_is_an_error(self, find_names):
        for show in (find_names.explain, find_names.render_explanation, find_names.render):
            with pytest.raises(ValueError, match="expected one text, got a list of 2"):
                show(["Ann sang.", "It rained."])
