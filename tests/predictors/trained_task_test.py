"""Tests of trained models that take and return plain texts."""

import pytest

from elmo_tasks import TrainedTask
from tests.demo.archives import write_archive

# Two paragraphs; the second sentence is in NFD, with more characters than its words in NFC.
TEXT = "Ann met Rene\u0301 in Rome. He  was tired.\n\nThe old man sings: he beat Chelsea."
TEXTS = {
    "ner": [TEXT],
    "srl": [TEXT],
    "coref": [TEXT],
    "sst": [TEXT],
    "snli": [TEXT, "Ann beat Chelsea."],
    "squad": ["Who sings?", TEXT],
}


def spans_in(result) -> list[dict]:
    """All parts of a result that are places in a text."""
    if isinstance(result, list):
        return [span for part in result for span in spans_in(part)]
    if not isinstance(result, dict):
        return []
    return [result] if "start" in result else [span for part in result.values() for span in spans_in(part)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, TrainedTask]:
    folder = tmp_path_factory.mktemp("trained")
    return {task: TrainedTask(write_archive(folder / task, task, seed=3)) for task in TEXTS}


@pytest.mark.parametrize("task", TEXTS)
class TestAllTasks:
    def test_places_are_in_the_whole_text(self, trained, task):
        spans = spans_in(trained[task](*TEXTS[task]))
        assert bool(spans) == (task not in ("sst", "snli"))
        assert all(TEXT[span["start"] : span["end"]] == span["text"] for span in spans)
        if task in ("ner", "srl"):
            # Sentences of both paragraphs.
            assert min(span["start"] for span in spans) < TEXT.index("\n") < max(span["end"] for span in spans)

    def test_many_texts_have_the_results_of_each(self, trained, task):
        single, empty = trained[task](*TEXTS[task]), trained[task](*[" "] * len(TEXTS[task]))
        columns = [[text, " ", text] for text in TEXTS[task]]
        first, second, third = trained[task](*columns)
        assert rounded(first) == rounded(third) == rounded(single) and second == empty
        assert trained[task](*[[]] * len(TEXTS[task])) == []


def rounded(result):
    """The padding of a batch may change the last digits."""
    if isinstance(result, dict):
        return {key: rounded(value) for key, value in result.items()}
    return [rounded(value) for value in result] if isinstance(result, list) else pytest.approx(result, abs=1e-4)


class TestResults:
    def test_probabilities_and_stars(self, trained):
        found = trained["sst"](TEXT)
        assert found["probabilities"].keys() == {1, 2, 3, 4, 5}
        assert found["stars"] == max(found["probabilities"], key=found["probabilities"].get)
        assert trained["snli"](*TEXTS["snli"]).keys() == {"entailment", "neutral", "contradiction"}

    def test_pronouns_are_replaced(self, trained, monkeypatch):
        task = trained["coref"]
        output = {
            "clusters": [[[0, 0], [3, 3]]],
            "places": [[{"start_char": 0, "end_char": 3}, {"start_char": 10, "end_char": 13}]],
        }
        monkeypatch.setattr(task.predictor, "predict_batch_json", lambda lines: [output])
        found = task("Ann sang. She was tired.")
        assert [mention["text"] for mention in found["chains"][0]] == ["Ann", "She"]
        assert found["resolved"] == "Ann sang. Ann was tired."
