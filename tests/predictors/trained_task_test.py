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
from elmo_tasks.models import NerTagger, SemanticRoleLabeler
from elmo_tasks.predictors.ner import NerPredictor
from elmo_tasks.predictors.trained_task import predictor_of
from tests.results import approximately
from tests.vectors.helpers import recorded

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
    """All spans of a text in a result."""
    spans = []
    if isinstance(result, list):
        for element in result:
            spans += spans_in(element)
    elif isinstance(result, dict) and "text" in result:
        spans.append(result)
    elif isinstance(result, dict):
        if "verb" in result:
            spans.append({**result, "text": result["verb"]})
        for value in result.values():
            spans += spans_in(value)
    return spans


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
        for span in spans:
            assert TEXT[span["start"] : span["end"]] == span["text"]
        if task in ("ner", "srl"):
            # Sentences of both paragraphs.
            lowest_start = min(span["start"] for span in spans)
            highest_end = max(span["end"] for span in spans)
            assert lowest_start < TEXT.index("\n") < highest_end

    @pytest.mark.parametrize("text", ["__", "______", "_ _ _", "[WORD] [WORD]"])
    def test_a_line_of_a_form_has_words(self, trained, task, text):
        n_inputs = len(TEXTS[task])
        (result,) = trained[task](*[[text]] * n_inputs)
        assert result == trained[task](*[text] * n_inputs)
        for span in spans_in(result):
            assert text[span["start"] : span["end"]] == span["text"]

    def test_many_texts_have_the_results_of_each(self, trained, task):
        n_inputs = len(TEXTS[task])
        expected = approximately(trained[task](*TEXTS[task]))
        expected_empty = trained[task](*[" "] * n_inputs)
        columns = [[text, " ", text] for text in TEXTS[task]]
        before, empty, after = trained[task](*columns)
        assert before == expected
        assert after == expected
        assert empty == expected_empty
        assert trained[task](*[[]] * n_inputs) == []

    def test_half_an_emoji_is_an_unknown_character(self, trained, task):
        halved = [text.replace("Ann", "Ann \ud83d") for text in TEXTS[task]]
        unknown = [text.replace("Ann", "Ann \ufffd") for text in TEXTS[task]]
        assert trained[task](*halved) == trained[task](*unknown)

    def test_results_do_not_depend_on_the_default_type(self, trained, task):
        expected = trained[task](*TEXTS[task])
        torch.set_default_dtype(torch.float64)
        try:
            assert TrainedTask(trained[task].path)(*TEXTS[task]) == expected
        finally:
            torch.set_default_dtype(torch.float32)


class TestResults:
    def test_probabilities_and_stars(self, trained):
        result = trained["sst"](TEXT)
        assert result["probabilities"].keys() == {1, 2, 3, 4, 5}
        assert result["stars"] == max(result["probabilities"], key=result["probabilities"].get)
        assert trained["snli"](*TEXTS["snli"]).keys() == {"entailment", "neutral", "contradiction"}


class TestInputs:
    def test_texts_are_given_by_place_or_name_alone_or_in_lists(self, trained):
        entails = trained["snli"]
        premise, hypothesis = TEXTS["snli"]
        expected = approximately(entails(premise, hypothesis))
        assert entails(hypothesis=hypothesis, premise=premise) == expected
        for columns in ([premise] * 2, [hypothesis] * 2), ([premise] * 2, hypothesis):
            assert entails(*columns) == [expected] * 2
        assert entails([(premise, hypothesis)] * 2) == [expected] * 2
        find_names = trained["ner"]
        expected = find_names([TEXT, ""])
        assert find_names(text for text in [TEXT, ""]) == expected
        assert find_names(pd.Series([TEXT, ""])) == expected

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
        answers = [False, True]
        with pytest.raises(CancelledError):
            trained["ner"](["man " * 4000] * 4, stop=lambda: answers.pop(0))
        assert answers == []
        assert len(list(trained["ner"].stream([("Ann",)] * 3, stop=lambda: False))) == 3


class TestStream:
    @pytest.mark.parametrize(
        ("batch_size", "n_read"), [(1, [1, 2, 3]), (2, [2, 2, 4]), (None, [9, 9, 9])]
    )
    def test_no_more_is_read_than_the_batch_size(self, trained, batch_size, n_read):
        read = []
        results = trained["ner"].stream(recorded([(TEXT,)] * 9, read), batch_size=batch_size)
        expected = approximately(trained["ner"](TEXT))
        for n_inputs in n_read:
            assert next(results) == expected
            assert len(read) == n_inputs

    def test_a_full_batch_does_not_wait_for_the_next_text(self, trained):
        read = []
        next(trained["ner"].stream(recorded([("Ann sang.",)] * 300, read)))
        assert len(read) == 128


def test_tasks_have_names_that_differ(archive):
    one = archive("ner", "none", 0)
    other = archive("ner", "both", 3)
    assert list(TrainedTask.by_name([one, archive("sst", "none", 0)])) == ["ner", "sst"]
    with pytest.raises(ValueError, match=f"named ner: {one} and {other}"):
        TrainedTask.by_name([one, other])


class TestCopies:
    @pytest.mark.parametrize("task", TEXTS)
    def test_a_task_is_the_place_of_its_model(self, trained, task):
        trained_task = trained[task]
        predictor = trained_task.predictor
        expected = approximately(trained_task(*TEXTS[task]))
        content = pickle.dumps(trained_task)
        assert len(content) < 500
        assert "a biLM with 3 layers" in repr(trained_task)
        assert pickle.loads(content)(*TEXTS[task]) == expected
        for copied in (pickle.loads(pickle.dumps(predictor)), copy.deepcopy(predictor)):
            task_input = copied.read(*TEXTS[task])
            assert next(copied.results([task_input])) == expected

    @pytest.mark.parametrize("method", [pytest.param("spawn", marks=pytest.mark.weekly), "fork"])
    def test_multiprocessing(self, trained, method):
        with get_context(method).Pool(2) as pool:
            results = pool.map(trained["ner"], [TEXT] * 4)
        assert results == [approximately(trained["ner"](TEXT))] * 4

    @pytest.mark.weekly
    def test_joblib(self, trained):
        calls = [delayed(trained["ner"])(TEXT)] * 4
        assert Parallel(n_jobs=2)(calls) == [approximately(trained["ner"](TEXT))] * 4


class TestLongSentences:
    """Without punctuation, a text is one sentence."""

    @pytest.mark.parametrize(
        ("task", "model_class"), [("ner", NerTagger), ("srl", SemanticRoleLabeler)]
    )
    def test_they_are_read_in_pieces(self, trained, monkeypatch, task, model_class):
        lengths = []
        forward = model_class.forward

        def measured_forward(model, tokens, **fields):
            lengths.append(get_text_field_mask(tokens).size(1))
            return forward(model, tokens, **fields)

        monkeypatch.setattr(model_class, "forward", measured_forward)
        text = " ".join(["she beat René"] * 100)
        spans = spans_in(trained[task](text))
        assert max(lengths) == 96
        assert spans[-1]["end"] > 1000
        for span in spans:
            assert text[span["start"] : span["end"]] == span["text"]

    def test_plain_results_need_no_tags_for_each_word_and_verb(self, trained, monkeypatch):
        outputs = []
        predictor = trained["srl"].predictor
        monkeypatch.setattr(predictor, "result", lambda results, text: outputs.extend(results))
        trained["srl"](" ".join(["she beat René"] * 100))
        assert {len(output["words"]) for output in outputs} == {96, 12}

    def test_a_prediction_has_all_words_and_the_pieces(self, trained):
        words = ["she", "beat", ","] * 100
        names = trained["ner"].predictor.predict_tokenized(words)
        roles = trained["srl"].predictor.predict_tokenized(words)
        for prediction in (names, roles):
            assert prediction["words"] == words
            assert prediction["pieces"] == [[0, 95], [96, 191], [192, 287], [288, 299]]
        assert len(names["tags"]) == 300
        for verb in roles["verbs"]:
            assert len(verb["tags"]) == 300

    def test_the_roles_of_a_verb_are_in_its_piece(self, trained):
        words = ["she", "beat", ","] * 100
        predictor = trained["srl"].predictor
        (verb,) = predictor.predict_json({"words": words, "predicates": [200]})["verbs"]
        outside = verb["tags"][:192] + verb["tags"][288:]
        assert set(outside) == {"O"} != set(verb["tags"])
        assert verb["probabilities"][:192] == [None] * 192
        assert verb["description"].startswith("she beat , ")
        assert verb["spans"]
        for span in verb["spans"]:
            assert span["start"] >= 192


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
            n_rows = len(frame) // 2
            assert list(frame["document"]) == [0] * n_rows + [2] * n_rows
            verbs = {(span["text"], span["start"]) for span in spans if "verb" in span}
            if verbs:
                assert set(zip(frame["verb"], frame["verb_start"], strict=True)) == verbs
            spans = [span for span in spans if "verb" not in span] * 2
        if spans:
            frame_with_words = frame[frame["document"] != 1]
            assert list(frame_with_words["text"]) == [span["text"] for span in spans]

    @pytest.mark.parametrize("task", ["ner", "srl", "coref", "squad"])
    def test_a_picture_has_the_text_and_the_labels(self, trained, task):
        texts = [text.replace("He ", "He<b> ") for text in TEXTS[task]]
        result = trained[task](*texts)
        html = trained[task].render(*texts)
        assert "<b>" not in html
        assert "He" in html
        if task in ("ner", "srl"):
            labels = {str(span["label"]) for span in spans_in(result) if "label" in span}
        else:
            labels = {"1" if task == "coref" else "answer"}
        assert labels
        for label in labels:
            assert re.search(rf">\s*{label}\s", html)

    @pytest.mark.parametrize("task", TEXTS)
    def test_columns_and_their_types_do_not_depend_on_the_texts(self, trained, task):
        n_inputs = len(TEXTS[task])
        empty = trained[task].frame(*[[]] * n_inputs)
        assert len(empty) == 0
        assert empty.columns[0] == "document"
        assert "object" not in [str(dtype) for dtype in empty.dtypes]
        for texts in ([" "], ["It."], [TEXT]):
            frame = trained[task].frame(*[texts] * n_inputs)
            assert list(frame.dtypes.items()) == list(empty.dtypes.items())

    def test_labels_are_bars(self, trained):
        html = trained["sst"].render(TEXT)
        for stars, share in trained["sst"](TEXT)["probabilities"].items():
            assert f"<div>{'★' * stars}</div>" in html
            assert f"{share:.2f}" in html


class TestOptions:
    def test_names_below_the_threshold_are_left_out(self, archive, trained):
        names = trained["ner"](TEXT)
        probabilities = sorted(name["probability"] for name in names)
        threshold = probabilities[len(names) // 2] - 1e-6
        expected = [name for name in names if name["probability"] > threshold]
        assert 0 < len(expected) < len(names)
        strict = TrainedTask(
            archive("ner", "both", 3), threshold=threshold, batch_words=1, progress=False
        )
        for task in (strict, pickle.loads(pickle.dumps(strict))):
            assert task([TEXT]) == [approximately(expected)]

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
        message = f"expected numbers as weights, got NaN in {re.escape(name)}: .*sst"
        with pytest.raises(ValueError, match=message):
            TrainedTask(tmp_path / "sst")

    def test_a_threshold_may_be_a_string(self, archive, trained):
        names = trained["ner"](TEXT)
        lowest = min(name["probability"] for name in names)
        path = archive("ner", "both", 3)
        assert TrainedTask(path, threshold=str(lowest / 2))(TEXT) == names
        assert TrainedTask(path, threshold="1")(TEXT) == []


def test_a_batch_that_does_not_fit_in_memory_is_halved(trained, monkeypatch):
    texts = [TEXT, "Ann sings .", "", "Bob met Tom ."]
    expected = approximately(trained["ner"](texts))
    decode = NerTagger.make_output_human_readable
    sizes = []

    def limited(model, output):
        sizes.append(len(output["words"]))
        if sizes[-1] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return decode(model, output)

    monkeypatch.setattr(NerTagger, "make_output_human_readable", limited)
    assert trained["ner"](texts) == expected
    assert max(sizes) > 1
