import copy
import pickle
from multiprocessing import get_context

import pandas as pd
import pytest
from allennlp.nn.util import get_text_field_mask
from joblib import Parallel, delayed

from elmo_tasks import TrainedTask

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
    verb = [{**result, "text": result["verb"]}] if "verb" in result else []
    return [result] if "text" in result else verb + [span for part in result.values() for span in spans_in(part)]


@pytest.fixture(scope="module")
def trained(archive) -> dict[str, TrainedTask]:
    return {task: TrainedTask(archive(task, "both", 3)) for task in TEXTS}


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


class TestInputs:
    def test_texts_are_given_by_place_or_name_alone_or_in_lists(self, trained):
        entails, (premise, hypothesis) = trained["snli"], TEXTS["snli"]
        expected = rounded(entails(premise, hypothesis))
        assert rounded(entails(hypothesis=hypothesis, premise=premise)) == expected
        for columns in ([premise] * 2, [hypothesis] * 2), ([premise] * 2, hypothesis):
            assert rounded(entails(*columns)) == [expected] * 2
        assert rounded(entails([(premise, hypothesis)] * 2)) == [expected] * 2
        find_names = trained["ner"]
        assert find_names(text for text in [TEXT, ""]) == find_names(pd.Series([TEXT, ""])) == find_names([TEXT, ""])

    @pytest.mark.parametrize(
        ("task", "given", "message"),
        [
            ("snli", ["Ann sings."], "expected premise and hypothesis, got 'Ann sings.'"),
            ("snli", [["Ann", "Tom"]], "expected premise and hypothesis"),
            ("snli", [["Ann"], ["Ann", "Tom"]], "got 1 as premise, 2 as hypothesis"),
            ("ner", [], "expected text, got nothing"),
            ("ner", [None], "got None"),
            ("ner", [["Ann", float("nan")]], r"got nan \(text 1\)"),
            ("ner", [{"sentence": "Ann"}], "got a table"),
        ],
    )
    def test_other_inputs_are_errors(self, trained, task, given, message):
        with pytest.raises((TypeError, ValueError), match=message):
            trained[task](*given)


class TestCopies:
    @pytest.mark.parametrize("task", TEXTS)
    def test_a_task_is_the_place_of_its_model(self, trained, task):
        task, texts = trained[task], TEXTS[task]
        content, expected = pickle.dumps(task), rounded(task(*texts))
        assert len(content) < 500 and "a biLM with 3 layers" in repr(task)
        assert pickle.loads(content)(*texts) == expected
        for copied in (pickle.loads(pickle.dumps(task.predictor)), copy.deepcopy(task.predictor)):
            assert next(copied.results([(tuple(texts), copied.lines(*texts))])) == expected

    @pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.weekly), "fork"])
    def test_multiprocessing(self, trained, method):
        with get_context(method).Pool(2) as pool:
            found = pool.map(trained["ner"], TEXTS["ner"] * 4)
        assert found == [rounded(trained["ner"](*TEXTS["ner"]))] * 4

    @pytest.mark.weekly
    def test_joblib(self, trained):
        found = Parallel(n_jobs=2)(delayed(trained["ner"])(*TEXTS["ner"]) for _ in range(4))
        assert found == [rounded(trained["ner"](*TEXTS["ner"]))] * 4


class TestLongSentences:
    """Without punctuation, a text is one sentence."""

    def test_they_are_read_in_pieces(self, trained, monkeypatch):
        longest = []
        for task in ("ner", "srl"):
            model = trained[task].predictor._model
            forward = model.forward

            def measured(tokens, forward=forward, **fields):
                longest.append(get_text_field_mask(tokens).size(1))
                return forward(tokens, **fields)

            monkeypatch.setattr(model, "forward", measured)
            text = " ".join(["she beat René"] * 100)
            spans = spans_in(trained[task](text))
            assert max(longest) == 96 and spans[-1]["end"] > 1000
            assert all(text[span["start"] : span["end"]] == span["text"] for span in spans)

    def test_plain_results_need_no_tags_for_each_word_and_verb(self, trained, monkeypatch):
        seen = []
        monkeypatch.setattr(trained["srl"].predictor, "plain", lambda predictions, text: seen.extend(predictions))
        trained["srl"](" ".join(["she beat René"] * 100))
        assert {len(verb["tags"]) for verb in seen[0]["verbs"]} == {96, 12}

    def test_a_prediction_has_all_words_and_the_pieces(self, trained):
        words = ["she", "beat", ","] * 100
        for task in ("ner", "srl"):
            prediction = trained[task].predictor.predict_tokenized(words)
            assert prediction["pieces"] == [[0, 95], [96, 191], [192, 287], [288, 299]] and prediction["words"] == words
            for tags in [verb["tags"] for verb in prediction["verbs"]] if task == "srl" else [prediction["tags"]]:
                assert len(tags) == 300
        verb = trained["srl"].predictor.predict_json({"words": words, "predicates": [200]})["verbs"][0]
        assert set(verb["tags"][:192] + verb["tags"][288:]) == {"O"} != set(verb["tags"])
        assert verb["probabilities"][:192] == [None] * 192 and verb["description"].startswith("she beat , ")
        assert verb["spans"] and all(span["start"] >= 192 for span in verb["spans"])
