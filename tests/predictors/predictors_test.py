"""Tests of what all task predictors have in common."""

import json

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
from tests.predictors.trained_task_test import rounded
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


def read(predictor: Predictor, path) -> list[Instance]:
    """Reads without gold, as `allennlp predict --use-dataset-reader` does."""
    return list(predictor._dataset_reader.read(path))


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
            assert alone == rounded(output)
        assert together[2].keys() <= together[0].keys()

    def test_bad_lines_are_errors_with_their_numbers(self, made_predictor, task):
        predictor = made_predictor(task, keep_going=True)
        key = next(iter(LINES[task][0]))
        bad = ["no JSON", '{"body": "a"}', json.dumps({key: 7}), "[1]"]
        bad += [
            json.dumps({"words": words, "sentences": [words]})
            for words in (["a", ""], ["\t"], [7], ["<S>"], "a")
        ]
        # The last line is good, in a file with a byte order mark.
        lines = [
            predictor.load_line(line) for line in [*bad, "\ufeff" + json.dumps(LINES[task][0])]
        ]
        *errors, good = predictor.predict_batch_json(lines)
        assert [error["line"] for error in errors] == list(range(1, 10)) and "error" not in good
        strict = made_predictor(task)
        strict.load_line("{}")
        with pytest.raises(ValueError, match="line 2"):
            strict.predict_json(strict.load_line(bad[1]))
        for given in ("in.jsonl", ["in.jsonl"], [None]):
            with pytest.raises(ValueError, match="expected a line like"):
                strict.predict_batch_json(given)

    def test_the_files_of_the_task_are_read_without_gold(self, make_model, fixtures_root, task):
        made = make_model(task, PLACES["none"])
        predictor = Predictor.by_name(made.model.default_predictor)(made.model, made.reader)
        (path,) = (
            (fixtures_root / task).glob("dev*[!t]")
            if task == "snli"
            else (fixtures_root / task).glob("dev*")
        )
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
        ids = {"snli": ["x", "x"], "squad": ["a", "b"]}.get(task, [])
        assert [output.get("pairID", output.get("id")) for output in outputs[: len(ids)]] == ids

    def test_the_language_decides_about_words(self, made_predictor, task):
        predictor = made_predictor(task, language="xx")
        keys = {
            "coref": ["document"],
            "snli": ["sentence1", "sentence2"],
            "squad": ["question", "passage"],
        }
        line = dict.fromkeys(keys.get(task, ["sentence"]), "Ann isn't singing.")
        ((instance, *_),) = predictor.instances_of(predictor.read_line(line).parts)
        field = instance[names_of_texts(instance)[0]]
        words = [token.text for token in (field[0] if task == "coref" else field)]
        assert words == ["Ann", "isn't", "singing", "."]

    @pytest.mark.parametrize(
        "interpreter",
        [
            SimpleGradient,
            *(
                pytest.param(each, marks=pytest.mark.weekly)
                for each in (IntegratedGradient, SmoothGradient)
            ),
        ],
    )
    def test_interpreters_give_each_word_a_weight(self, made_predictor, task, interpreter):
        predictor = made_predictor(task)
        weights = interpreter(predictor).saliency_interpret_from_json(LINES[task][1])["instance_1"]
        ((instance, *_),) = predictor.instances_of(predictor.read_line(LINES[task][1]).parts)
        for name, text in zip(names_of_texts(instance), sorted(weights, reverse=True), strict=True):
            field = instance[name]
            n_words = sum(map(len, field)) if task == "coref" else len(field)
            assert len(weights[text]) == n_words and sum(weights[text]) == pytest.approx(
                1.0, abs=1e-3
            )

    @pytest.mark.parametrize("places", EACH_PLACE)
    def test_gradients_are_differences_of_the_loss(self, made_predictor, task, places):
        predictor = made_predictor(task, places)
        before = predictor.predict_json(LINES[task][1])
        instance = predictor.json_to_labeled_instances(LINES[task][1])[0]
        gradients, output = predictor.get_gradients([instance])
        first = gradients[f"grad_input_{len(names_of_texts(instance))}"][0]
        word, dim = divmod(int(abs(first).argmax()), first.shape[1])

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
        differences = [(loss_with(step) - loss_with(-step)) / (2 * step) for step in (0.01, 0.02)]
        assert pytest.approx(first[word, dim], rel=0.05) in differences
        # The model is as before, for other threads.
        assert predictor.predict_json(LINES[task][1]) == rounded(before)

    @pytest.mark.parametrize("places", EACH_PLACE)
    def test_words_are_removed(self, made_predictor, task, places):
        if task == "coref":
            pytest.skip("mentions are numbers of words, which change with each removed word")
        if task == "squad" and places != "none":
            pytest.skip("AllenNLP compares the passages, whose character ids are arrays")
        names = {"snli": ("hypothesis", "grad_input_1"), "squad": ("question", "grad_input_2")}
        of_text, predictor = (
            names.get(task, ("tokens", "grad_input_1")),
            made_predictor(task, places),
        )
        reduced = InputReduction(predictor).attack_from_json(LINES[task][1], *of_text)
        assert reduced["final"] and all(
            set(words) <= set(reduced["original"]) for words in reduced["final"]
        )


class TestBatches:
    @pytest.mark.parametrize("task", ["snli", "squad"])
    def test_a_text_without_words_in_a_file_is_predicted_as_in_a_line(
        self, made_predictor, tmp_path, task
    ):
        pairs = [("Ann sang.", "She sang."), ("Ann sang.", ""), (" ", "She sang.")]
        if task == "snli":
            rows = [
                {"sentence1": one, "sentence2": two, "pairID": f"{one}{two}"} for one, two in pairs
            ]
            (tmp_path / "file").write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            rows = [
                {"context": one, "qas": [{"question": two, "id": f"{one}{two}"}]}
                for one, two in pairs
            ]
            (tmp_path / "file").write_text(json.dumps({"data": [{"paragraphs": rows}]}))
        predictor = made_predictor(task)
        outputs = predictor.predict_batch_instance(read(predictor, tmp_path / "file"))
        assert [output.pop("pairID", output.pop("id", None)) for output in outputs] == [
            "".join(pair) for pair in pairs
        ]
        empty = predictor.predict(*pairs[1])
        assert outputs[0].keys() > empty.keys() and outputs[1:] == [empty, empty]

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
