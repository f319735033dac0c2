"""How much each word matters for each thing that a task finds."""

import pytest

from elmo_tasks import TrainedTask
from tests.predictors.trained_task_test import TEXT, TEXTS, rounded


@pytest.fixture(scope="module")
def find_names() -> TrainedTask:
    return TrainedTask("ner", device="cpu")


class TestExplain:
    @pytest.mark.parametrize("task", TEXTS)
    def test_what_is_found_has_a_weight_for_each_word(self, archive, task):
        trained = TrainedTask(archive(task, "both", 3))
        result, explained = trained(*TEXTS[task]), trained.explain(*TEXTS[task])
        things = {"ner": list, "srl": list, "coref": lambda found: found["chains"]}.get(
            task, lambda found: [found]
        )
        assert explained and [each["found"] for each in explained] == rounded(things(result))
        inputs = trained.predictor.inputs if len(TEXTS[task]) > 1 else [None]
        texts = dict(zip(inputs, TEXTS[task], strict=True))
        for words in (each["words"] for each in explained):
            assert sum(word["weight"] for word in words) == pytest.approx(len(texts), abs=1e-3)
            for word in words:
                text = texts[word.get("input")][word["start"] : word["end"]]
                assert text == word["text"] or text == TEXT[8:13]

    def test_a_name_depends_on_its_own_words(self, find_names):
        """Not on the other names of the sentence."""
        explained = find_names.explain("Angela Merkel met Tim Cook in Berlin. It rained.")
        assert [each["found"]["text"] for each in explained] == [
            "Angela Merkel",
            "Tim Cook",
            "Berlin",
        ]
        weights = [{word["text"]: word["weight"] for word in each["words"]} for each in explained]
        for number, words in enumerate(["Angela Merkel", "Tim Cook"]):
            of_name = [sum(each[word] for word in words.split()) for each in weights]
            assert of_name[number] > 0.5 > 2 * of_name[1 - number]

    def test_the_picture_has_a_row_for_each_name(self, find_names):
        html = find_names.render_explanation("Angela <b> met Tim Cook in Berlin. He left Rome.")
        assert (
            html.count("<tr>") == 4 + 2
            and "<th>Tim Cook (PERSON)</th>" in html
            and "<b>" not in html
        )
        assert find_names.render_explanation("It rained all day.") == ""

    def test_a_text_without_names_has_none(self, find_names):
        assert find_names.explain("It rained all day.") == [] == find_names.explain(" ")
