import copy
import json
import pickle
import re
from concurrent.futures import CancelledError
from multiprocessing import get_context

import pandas as pd
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.nn.util import get_text_field_mask
from joblib import Parallel, delayed
from spacy.tokens import Doc
from spacy.vocab import Vocab

from elmo_tasks import TrainedTask
from elmo_tasks.files.archives import unpack
from elmo_tasks.predictors.ner import NerPredictor
from elmo_tasks.predictors.trained_task import predictor_of

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
    return (
        [result]
        if "text" in result
        else verb + [span for part in result.values() for span in spans_in(part)]
    )


@pytest.fixture(scope="module")
def trained(archive) -> dict[str, TrainedTask]:
    return {task: TrainedTask(archive(task, "both", 3)) for task in TEXTS}


def test_a_model_with_a_label_of_two_lines_is_refused(archive, tmp_path):
    unpack(archive("ner", "both", 3), tmp_path / "ner")
    labels = tmp_path / "ner" / "vocabulary" / "labels.txt"
    for label in ("B-PER@@NEWLINE@@1", "B-"):
        content = labels.read_text()
        labels.write_text(content.replace("B-PER\n", f"{label}\n"))
        with pytest.raises(ValueError, match=r"labels in one line without tabs.*ner"):
            TrainedTask(tmp_path / "ner")
        labels.write_text(content)
    TrainedTask(tmp_path / "ner")


def test_a_model_of_an_export_with_options_needs_no_trust(archive, tmp_path):
    unpack(archive("ner", "both", 3), tmp_path / "ner")
    config = json.loads((tmp_path / "ner" / "config.json").read_text())
    options = {"text_column": "review", "from_name": "label", "skip_bad_spans": True}
    config["dataset_reader"] |= options
    (tmp_path / "ner" / "config.json").write_text(json.dumps(config))
    assert TrainedTask(tmp_path / "ner").task == "ner"


@pytest.mark.parametrize("task", TEXTS)
class TestAllTasks:
    def test_places_are_in_the_whole_text(self, trained, task):
        spans = spans_in(trained[task](*TEXTS[task]))
        assert bool(spans) == (task not in ("sst", "snli"))
        assert all(TEXT[span["start"] : span["end"]] == span["text"] for span in spans)
        if task in ("ner", "srl"):
            # Sentences of both paragraphs.
            assert (
                min(span["start"] for span in spans)
                < TEXT.index("\n")
                < max(span["end"] for span in spans)
            )

    @pytest.mark.parametrize("text", ["__", "______", "_ _ _", "[WORD] [WORD]"])
    def test_a_line_of_a_form_has_words(self, trained, task, text):
        texts = [text] * len(TEXTS[task])
        (result,) = trained[task](*([text] for text in texts))
        assert result == trained[task](*texts)
        for span in spans_in(result):
            assert text[span["start"] : span["end"]] == span["text"]

    def test_many_texts_have_the_results_of_each(self, trained, task):
        single, empty = trained[task](*TEXTS[task]), trained[task](*[" "] * len(TEXTS[task]))
        columns = [[text, " ", text] for text in TEXTS[task]]
        first, second, third = trained[task](*columns)
        assert rounded(first) == rounded(third) == rounded(single) and second == empty
        assert trained[task](*[[]] * len(TEXTS[task])) == []

    def test_half_an_emoji_is_an_unknown_character(self, trained, task):
        halved, unknown = (
            [text.replace("Ann", f"Ann {c}") for text in TEXTS[task]] for c in ("\ud83d", "\ufffd")
        )
        assert trained[task](*halved) == trained[task](*unknown)

    def test_results_do_not_depend_on_the_default_type(self, trained, task):
        expected = trained[task](*TEXTS[task])
        torch.set_default_dtype(torch.float64)
        try:
            assert TrainedTask(trained[task].path)(*TEXTS[task]) == expected
        finally:
            torch.set_default_dtype(torch.float32)


def rounded(result):
    """The padding of a batch may change the last digits."""
    if isinstance(result, dict):
        return {key: rounded(value) for key, value in result.items()}
    return (
        [rounded(value) for value in result]
        if isinstance(result, list)
        else pytest.approx(result, abs=1e-4)
    )


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
        assert (
            find_names(text for text in [TEXT, ""])
            == find_names(pd.Series([TEXT, ""]))
            == find_names([TEXT, ""])
        )

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
            ("ner", [Doc(Vocab(), ["Ann"])], r"got a Doc of spaCy: give doc\.text"),
            ("ner", [[Doc(Vocab(), ["Ann"])[:1]]], r"got a Span of spaCy: give doc\.text"),
        ],
    )
    def test_other_inputs_are_errors(self, trained, task, given, message):
        with pytest.raises((TypeError, ValueError), match=message):
            trained[task](*given)


class TestOwnClasses:
    def test_a_variable_names_their_package(self, trained, tmp_path, monkeypatch):
        code = """
from allennlp.models import Model
from elmo_tasks.models import NerTagger

@Model.register("tiny_ner")
class TinyTagger(NerTagger):
    pass
"""
        (tmp_path / "tiny_package.py").write_text(code)
        unpack(trained["ner"].path, tmp_path / "model")
        config = tmp_path / "model" / "config.json"
        content = json.loads(config.read_text())
        content["model"]["type"] = "tiny_ner"
        config.write_text(json.dumps(content))
        monkeypatch.syspath_prepend(tmp_path)
        assert predictor_of(config.parent) is None
        with pytest.raises(ConfigurationError, match=r"tiny_ner.* ELMO_TASKS_PACKAGES"):
            TrainedTask(config.parent)
        monkeypatch.setenv("ELMO_TASKS_PACKAGES", "tiny_package, tiny_package")
        assert predictor_of(config.parent) is NerPredictor
        # Code of the user, which an archive may name.
        assert TrainedTask(config.parent)(TEXT) == trained["ner"](TEXT)


class TestStop:
    def test_it_is_asked_before_each_batch(self, trained):
        asked = []
        with pytest.raises(CancelledError):
            trained["ner"](["man " * 4000] * 4, stop=lambda: asked.append(1) or len(asked) == 2)
        assert len(asked) == 2
        assert len(list(trained["ner"].stream([("Ann",)] * 3, stop=lambda: False))) == 3


class TestStream:
    @pytest.mark.parametrize(
        ("batch_size", "n_read"), [(1, [1, 2, 3]), (2, [2, 2, 4]), (None, [9, 9, 9])]
    )
    def test_no_more_is_read_than_the_batch_size(self, trained, batch_size, n_read):
        read: list[int] = []
        texts = ((read.append(number) or TEXT,) for number in range(9))
        results = trained["ner"].stream(texts, batch_size=batch_size)
        assert [(rounded(next(results)), len(read)) for _ in range(3)] == [
            (rounded(trained["ner"](TEXT)), number) for number in n_read
        ]

    def test_a_full_batch_does_not_wait_for_the_next_text(self, trained):
        read: list[int] = []
        results = trained["ner"].stream(
            (read.append(number) or ("Ann sang.",)) for number in range(300)
        )
        next(results)
        assert len(read) == 128


def test_tasks_have_names_that_differ(archive):
    one, other = archive("ner", "none", 0), archive("ner", "both", 3)
    assert list(TrainedTask.by_name([one, archive("sst", "none", 0)])) == ["ner", "sst"]
    with pytest.raises(ValueError, match=f"named ner: {one} and {other}"):
        TrainedTask.by_name([one, other])


class TestCopies:
    @pytest.mark.parametrize("task", TEXTS)
    def test_a_task_is_the_place_of_its_model(self, trained, task):
        task, texts = trained[task], TEXTS[task]
        content, expected = pickle.dumps(task), rounded(task(*texts))
        assert len(content) < 500 and "a biLM with 3 layers" in repr(task)
        assert pickle.loads(content)(*texts) == expected
        for copied in (pickle.loads(pickle.dumps(task.predictor)), copy.deepcopy(task.predictor)):
            assert next(copied.results([copied.read(*texts)])) == expected

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
        monkeypatch.setattr(
            trained["srl"].predictor, "result", lambda outputs, text: seen.extend(outputs)
        )
        trained["srl"](" ".join(["she beat René"] * 100))
        assert {len(output["words"]) for output in seen} == {96, 12}

    def test_a_prediction_has_all_words_and_the_pieces(self, trained):
        words = ["she", "beat", ","] * 100
        for task in ("ner", "srl"):
            prediction = trained[task].predictor.predict_tokenized(words)
            assert (
                prediction["pieces"] == [[0, 95], [96, 191], [192, 287], [288, 299]]
                and prediction["words"] == words
            )
            for tags in (
                [verb["tags"] for verb in prediction["verbs"]]
                if task == "srl"
                else [prediction["tags"]]
            ):
                assert len(tags) == 300
        verb = trained["srl"].predictor.predict_json({"words": words, "predicates": [200]})[
            "verbs"
        ][0]
        assert set(verb["tags"][:192] + verb["tags"][288:]) == {"O"} != set(verb["tags"])
        assert verb["probabilities"][:192] == [None] * 192 and verb["description"].startswith(
            "she beat , "
        )
        assert verb["spans"] and all(span["start"] >= 192 for span in verb["spans"])


class TestViews:
    @pytest.mark.parametrize("task", TEXTS)
    def test_a_table_has_all_parts_of_all_results(self, trained, task):
        columns = [[text, " ", text] for text in TEXTS[task]]
        frame = trained[task].frame(*columns)
        spans = spans_in(trained[task](*TEXTS[task]))
        if task in ("sst", "snli", "squad"):
            assert list(frame["document"]) == [0, 1, 2]
            spans = spans * 2
        else:
            assert list(frame["document"]) == [0] * (len(frame) // 2) + [2] * (len(frame) // 2)
            verbs = {(span["text"], span["start"]) for span in spans if "verb" in span}
            spans = [span for span in spans if "verb" not in span] * 2
            assert not verbs or verbs == set(zip(frame["verb"], frame["verb_start"], strict=True))
        found = frame[frame["document"] != 1] if spans else frame
        assert [span["text"] for span in spans] == list(found["text"] if spans else [])

    @pytest.mark.parametrize("task", ["ner", "srl", "coref", "squad"])
    def test_a_picture_has_the_text_and_the_labels(self, trained, task):
        texts = [text.replace("He ", "He<b> ") for text in TEXTS[task]]
        result = trained[task](*texts)
        html = trained[task].render(*texts)
        assert "<b>" not in html and "He" in html
        labels = {str(span["label"]) for span in spans_in(result) if "label" in span} or {
            "1" if task == "coref" else "answer"
        }
        assert all(re.search(rf">\s*{label}\s", html) for label in labels)

    @pytest.mark.parametrize("task", TEXTS)
    def test_columns_and_their_types_do_not_depend_on_the_texts(self, trained, task):
        empty = trained[task].frame(*[[]] * len(TEXTS[task]))
        for texts in ([" "], ["It."], [TEXT]):
            frame = trained[task].frame(*[texts] * len(TEXTS[task]))
            assert list(frame.dtypes.items()) == list(empty.dtypes.items())
        assert (
            len(empty) == 0
            and next(iter(empty)) == "document"
            and "object" not in set(map(str, empty.dtypes))
        )

    def test_labels_are_bars(self, trained):
        html = trained["sst"].render(TEXT)
        for stars, share in trained["sst"](TEXT)["probabilities"].items():
            assert f"<div>{'★' * stars}</div>" in html and f"{share:.2f}" in html


class TestOptions:
    def test_names_below_the_threshold_are_left_out(self, archive, trained):
        found = trained["ner"](TEXT)
        threshold = sorted(name["probability"] for name in found)[len(found) // 2] - 1e-6
        strict = TrainedTask(
            archive("ner", "both", 3), threshold=threshold, batch_words=1, progress=False
        )
        for task in (strict, pickle.loads(pickle.dumps(strict))):
            expected = [name for name in found if name["probability"] > threshold]
            assert rounded(task([TEXT])) == [rounded(expected)] and 0 < len(expected) < len(found)

    def test_a_threshold_is_for_names(self, archive):
        with pytest.raises(ValueError, match="names for a threshold, got one of srl"):
            TrainedTask(archive("srl", "both", 3), threshold=0.5)
        for threshold in (1.5, float("nan"), "high", None):
            with pytest.raises(ValueError, match=f"a threshold from 0 to 1, got {threshold!r}"):
                TrainedTask(archive("ner", "both", 3), threshold=threshold)

    def test_weights_are_numbers(self, archive, tmp_path):
        TrainedTask(archive("sst")).save(tmp_path / "sst")
        weights = torch.load(tmp_path / "sst" / "weights.th")
        name = list(weights)[-1]
        weights[name].view(-1)[-1] = float("nan")
        torch.save(weights, tmp_path / "sst" / "weights.th")
        with pytest.raises(
            ValueError, match=f"expected numbers as weights, got NaN in {re.escape(name)}: .*sst"
        ):
            TrainedTask(tmp_path / "sst")

    def test_a_threshold_may_be_a_string(self, archive, trained):
        found = trained["ner"](TEXT)
        lowest = min(name["probability"] for name in found)
        assert TrainedTask(archive("ner", "both", 3), threshold=str(lowest / 2))(TEXT) == found
        assert TrainedTask(archive("ner", "both", 3), threshold="1")(TEXT) == []


def test_a_batch_that_does_not_fit_in_memory_is_halved(trained, monkeypatch):
    texts = [TEXT, "Ann sings .", "", "Bob met Tom ."]
    expected, model, sizes = rounded(trained["ner"](texts)), trained["ner"].predictor._model, []
    decode = model.make_output_human_readable

    def limited(output):
        sizes.append(len(output["words"]))
        if sizes[-1] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return decode(output)

    monkeypatch.setattr(model, "make_output_human_readable", limited)
    assert rounded(trained["ner"](texts)) == expected
    assert max(sizes) > 1
