"""Tests of what all task predictors have in common."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allennlp.data import Instance
from allennlp.interpret.attackers import InputReduction
from allennlp.interpret.saliency_interpreters import (
    IntegratedGradient,
    SimpleGradient,
    SmoothGradient,
)
from allennlp.predictors import Predictor

from elmo_tasks.predictors import SentencePredictor
from elmo_tasks.predictors.interpretation import names_of_texts
from elmo_tasks.predictors.tokens import tokens_of
from tests.results import approximately
from tests.task_models import EACH_PLACE, PLACES, TASKS

# For each task, a line, a longer one, and one without words.
LINES = {
    "coref": [
        {"document": "Ann sang. She was tired."},
        {
            "sentences": [
                ["Mr.", "Jordan", "sang", "."],
                ["He", "was", "tired", "."],
                ["Who", "asked", "him", "?"],
            ]
        },
        {"document": " "},
    ],
    "ner": [
        {"sentence": "Jordan beat Chelsea."},
        {"words": ["The", "old", "man", "lives", "in", "Rome"]},
        {"words": []},
    ],
    "snli": [
        {"sentence1": "Two dogs run .", "sentence2": "Animals move ."},
        {"premise": "A man in a red coat sings .", "hypothesis": "A woman sleeps ."},
        {"premise": " ", "hypothesis": "A woman sleeps ."},
    ],
    "squad": [
        {"question": "Who beat Chelsea?", "passage": "Jordan beat Chelsea."},
        {
            "question": "Who was it that beat Rome?",
            "context": "It was  Anna who beat Rome, and not the old man.",
        },
        {"question": "", "passage": "Jordan beat Chelsea."},
    ],
    "srl": [
        {"words": ["Anna", "eats", "an", "apple"], "predicates": [1]},
        {"sentence": "The old man sings, and she eats an apple."},
        {"sentence": ""},
    ],
    "sst": [
        {"text": "It works."},
        {"words": ["It", "is", "a", "very", "good", "film"]},
        {"sentence": " "},
    ],
}


# Files with gold annotation that training refuses or skips, and the number of their inputs.
CONLL = "doc 0 {} {} - * {} - - - * {} -\n"
BAD_GOLD = {
    "coref": ("#begin document (nw/x); part 000\nnw/x 0 0 It - * - - - - * 1)\n\n#end document\n", 1),
    "ner": ("Jordan NNP\nbeat VBD\n\nChelsea NNP\n", 2),
    "snli": ('{"sentence1": "A", "sentence2": "B", "gold_label": "-", "pairID": "x"}\n' * 2, 2),
    "squad": (
        json.dumps(
            {"data": [{"paragraphs": [{"context": "It is so.", "qas": [
                {"id": "a", "question": "What?", "answers": []},
                {"id": "b", "question": "What?", "answers": [{"text": "so", "answer_start": 0}]},
            ]}]}]}
        ),
        2,
    ),
    "srl": (CONLL.format(0, "It", "-", "(ARG0(ARG1*") + CONLL.format(1, "rains", "rain", "(V*)"), 1),
    "sst": ("(9 (2 It) (x works))\n", 1),
}  # fmt: skip


def read(predictor: Predictor, path: Path) -> list[Instance]:
    """Reads without gold, as `allennlp predict --use-dataset-reader` does."""
    return list(predictor._dataset_reader.read(path))


def first_instance(predictor: Predictor, line: dict[str, Any]) -> Instance:
    """The first instance of a line."""
    instances = predictor.instances_of(predictor.read_line(line).parts)
    return instances[0][0]


@pytest.mark.parametrize("task", TASKS)
class TestAllTasks:
    def test_a_batch_has_the_predictions_of_its_lines(self, made_predictor, task):
        predictor = made_predictor(task)
        lines = [{**line, "id": number} for number, line in enumerate(LINES[task])]
        together = predictor.predict_batch_json(lines)
        assert [output["id"] for output in together] == [0, 1, 2]
        for line, output in zip(lines, together, strict=True):
            alone = predictor.predict_json(line)
            assert json.loads(predictor.dump_line(output)) == output
            assert alone == approximately(output)
        assert together[2].keys() <= together[0].keys()

    def test_bad_lines_are_errors_with_their_numbers(self, made_predictor, task):
        predictor = made_predictor(task, keep_going=True)
        key = next(iter(LINES[task][0]))
        lines = ["no JSON", '{"body": "a"}', json.dumps({key: 7}), "[1]"]
        for words in (["a", ""], ["\t"], [7], ["<S>"], "a"):
            lines.append(json.dumps({"words": words, "sentences": [words]}))
        # The last line is good, in a file with a byte order mark.
        lines.append("\ufeff" + json.dumps(LINES[task][0]))
        contents = [predictor.load_line(line) for line in lines]
        predictions = predictor.predict_batch_json(contents)
        assert "error" not in predictions.pop()
        assert [error["line"] for error in predictions] == list(range(1, 10))

    def test_a_bad_line_is_an_error_without_keep_going(self, made_predictor, task):
        predictor = made_predictor(task)
        predictor.load_line("{}")
        with pytest.raises(ValueError, match="line 2"):
            predictor.predict_json(predictor.load_line('{"body": "a"}'))
        for inputs in ("in.jsonl", ["in.jsonl"], [None]):
            with pytest.raises(ValueError, match="expected a line like"):
                predictor.predict_batch_json(inputs)

    def test_the_files_of_the_task_are_read_without_gold(self, make_model, fixtures_root, task):
        made = make_model(task, PLACES["none"])
        predictor = Predictor.by_name(made.model.default_predictor)(made.model, made.reader)
        # SNLI has also a text file.
        pattern = "dev*[!t]" if task == "snli" else "dev*"
        (path,) = (fixtures_root / task).glob(pattern)
        instance = read(predictor, path)[0]
        assert not {"label", "tags", "span_start"} & instance.fields.keys()
        assert not {"clusters", "gold_tags"} & instance["metadata"].metadata.keys()
        assert predictor.predict_instance(instance)
        assert made.reader.reads_gold

    def test_gold_that_a_training_refuses_is_not_read(self, made_predictor, tmp_path, task):
        content, n_inputs = BAD_GOLD[task]
        (tmp_path / "file").write_text(content)
        predictor = made_predictor(task)
        outputs = predictor.predict_batch_instance(read(predictor, tmp_path / "file"))
        assert len(outputs) == n_inputs
        if task == "snli":
            assert [output["pairID"] for output in outputs] == ["x", "x"]
        if task == "squad":
            assert [output["id"] for output in outputs] == ["a", "b"]

    def test_the_language_decides_about_words(self, made_predictor, task):
        predictor = made_predictor(task, language="xx")
        keys = {
            "coref": ["document"],
            "snli": ["sentence1", "sentence2"],
            "squad": ["question", "passage"],
        }
        line = dict.fromkeys(keys.get(task, ["sentence"]), "Ann isn't singing.")
        instance = first_instance(predictor, line)
        tokens = tokens_of(instance[names_of_texts(instance)[0]])
        assert [token.text for token in tokens] == ["Ann", "isn't", "singing", "."]

    @pytest.mark.parametrize(
        "interpreter",
        [
            SimpleGradient,
            pytest.param(IntegratedGradient, marks=pytest.mark.weekly),
            pytest.param(SmoothGradient, marks=pytest.mark.weekly),
        ],
    )
    def test_interpreters_give_each_word_a_weight(self, made_predictor, task, interpreter):
        predictor = made_predictor(task)
        line = LINES[task][1]
        weights = interpreter(predictor).saliency_interpret_from_json(line)["instance_1"]
        instance = first_instance(predictor, line)
        names = names_of_texts(instance)
        # `grad_input_1` is the last text.
        for name, key in zip(names, sorted(weights, reverse=True), strict=True):
            assert len(weights[key]) == len(tokens_of(instance[name]))
            assert sum(weights[key]) == pytest.approx(1.0, abs=1e-3)

    @pytest.mark.parametrize("places", EACH_PLACE)
    def test_gradients_are_differences_of_the_loss(self, made_predictor, task, places):
        predictor = made_predictor(task, places)
        before = predictor.predict_json(LINES[task][1])
        instance = predictor.json_to_labeled_instances(LINES[task][1])[0]
        gradients, output = predictor.get_gradients([instance])
        n_texts = len(names_of_texts(instance))
        # Of the first text. Shape: (n_words, dim)
        gradient = gradients[f"grad_input_{n_texts}"][0]
        word, dim = np.unravel_index(abs(gradient).argmax(), gradient.shape)

        def loss_with(change: float) -> float:
            calls = []

            def hook(layer, inputs, words):
                if not calls:
                    words[0, word, dim] += change
                calls.append(words)

            handle = predictor.get_interpretable_layer().register_forward_hook(hook)
            loss = float(predictor.get_gradients([instance])[1]["loss"])
            handle.remove()
            return loss

        assert loss_with(0) == float(output["loss"])
        # A step may be too small for float32, or so large that it crosses the bend of a ReLU.
        differences = []
        for step in (0.01, 0.02):
            differences.append((loss_with(step) - loss_with(-step)) / (2 * step))
        assert pytest.approx(gradient[word, dim], rel=0.05) in differences
        # The model is as before, for other threads.
        assert predictor.predict_json(LINES[task][1]) == approximately(before)

    @pytest.mark.parametrize("places", EACH_PLACE)
    def test_words_are_removed(self, made_predictor, task, places):
        if task == "coref":
            pytest.skip("mentions are numbers of words, which change with each removed word")
        if task == "squad" and places != "none":
            pytest.skip("AllenNLP compares the passages, whose character ids are arrays")
        field = {"snli": "hypothesis", "squad": "question"}.get(task, "tokens")
        gradient = "grad_input_2" if task == "squad" else "grad_input_1"
        attacker = InputReduction(made_predictor(task, places))
        reduced = attacker.attack_from_json(LINES[task][1], field, gradient)
        assert reduced["final"]
        for words in reduced["final"]:
            assert set(words) <= set(reduced["original"])


class TestBatches:
    @pytest.mark.parametrize("task", ["snli", "squad"])
    def test_a_text_without_words_in_a_file_is_predicted_as_in_a_line(
        self, made_predictor, tmp_path, task
    ):
        pairs = [("Ann sang.", "She sang."), ("Ann sang.", ""), (" ", "She sang.")]
        write = {"snli": write_snli, "squad": write_squad}[task]
        write(tmp_path / "file", pairs)
        predictor = made_predictor(task)
        outputs = predictor.predict_batch_instance(read(predictor, tmp_path / "file"))
        id_key = {"snli": "pairID", "squad": "id"}[task]
        assert [output.pop(id_key) for output in outputs] == ["0", "1", "2"]
        empty = predictor.predict(*pairs[1])
        assert outputs[0].keys() > empty.keys()
        assert outputs[1:] == [empty, empty]

    def test_they_are_bounded_by_words(self, make_model):
        made = make_model("sst", PLACES["none"])
        predictor = SentencePredictor(made.model, made.reader)
        sizes = []
        made.model.register_forward_hook(
            lambda model, args, output: sizes.append(len(output["logits"]))
        )
        lines = [{"words": ["good"] * length} for length in (3, 3, 3000, 3, 3, 3)]
        assert len(predictor.predict_batch_json(lines)) == 6
        assert sizes == [2, 4]


def write_snli(path: Path, pairs: list[tuple[str, str]]) -> None:
    lines = []
    for number, (premise, hypothesis) in enumerate(pairs):
        row = {"sentence1": premise, "sentence2": hypothesis, "pairID": str(number)}
        lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines))


def write_squad(path: Path, pairs: list[tuple[str, str]]) -> None:
    paragraphs = []
    for number, (passage, question) in enumerate(pairs):
        questions = [{"question": question, "id": str(number)}]
        paragraphs.append({"context": passage, "qas": questions})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
