import json
import re
from pathlib import Path

import pytest
from allennlp.predictors import Predictor

from elmo_tasks import models
from elmo_tasks.demo.rendering import predictions_html
from elmo_tasks.demo.task_archive import TASKS, TaskArchive, compared_archives, grouped
from elmo_tasks.demo.views import with_differences
from tests.task_models import TASKS as TASKS_OF_TESTS


class TestTaskArchive:
    def test_it_predicts_as_the_command_does(self, loaded, ner_archives):
        """Oracle: AllenNLP's predictor of the archive, and the names of the folders."""
        for archive, path in zip(loaded[:2], ner_archives, strict=True):
            predictor = Predictor.from_path(str(path))
            text = "Angela Merkel met Tim Cook in Berlin ."
            assert archive.predict(text) == predictor.predict_json({"sentence": text})
            assert (archive.name, archive.task.name) == (path.parent.name, "ner")

    def test_words_are_split_by_the_rules_of_the_language(self, ner_archives):
        """Oracle: by hand, for French; and the words of decomposed letters, as the command has them."""
        archive = TaskArchive.load(ner_archives[0], "fr")
        assert archive.predict("L'avion de l'arme\u0301e")["words"] == ["L'", "avion", "de", "l'", "arm\u00e9e"]
        assert TaskArchive.load(ner_archives[0], "ko").predict("나는 간다.")["words"] == ["나는", "간다", "."]

    def test_entailment_has_its_attention(self, loaded):
        """Oracle: the keys of the prediction, and rows that add up to 1."""
        prediction = loaded[2].predict("Two dogs run .", "Animals move .")
        assert [sum(row) for row in prediction["attention"]["premise"]] == pytest.approx([1, 1, 1, 1])

    def test_the_mixes_are_those_of_the_model(self, loaded):
        """Oracle: the weights after a softmax in Python, at both places; a baseline has none."""
        mixes = loaded[1].mixes()
        assert [mix["place"] for mix in mixes] == ["input", "output"]
        state = loaded[1].predictor._model.state_dict()
        weights = next(value for name, value in state.items() if name.endswith("mix.layer_weights")).double()
        assert mixes[0]["weights"] == pytest.approx((weights.exp() / weights.exp().sum()).tolist(), abs=1e-5)
        gamma = next(value for name, value in state.items() if name.endswith("mix.gamma"))
        assert mixes[0]["gamma"] == pytest.approx(gamma.item())
        assert loaded[0].mixes() == []

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "the sentence must have at least one word"),
            ("a " * 10_000, "at most 200 words, but has 10,000"),
            # Of each of these the task makes 199 words.
            (f"{'a-' * 99}a " * 3, "at most 400 words and punctuation marks, but has 597"),
        ],
    )
    def test_bad_text_is_refused_in_a_sentence(self, loaded, text, message):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=message):
            loaded[0].predict(text)

    def test_archives_of_one_task_are_together(self, loaded):
        """Oracle: by hand."""
        assert {task: len(archives) for task, archives in grouped(loaded).items()} == {"ner": 2, "snli": 1}

    def test_only_archives_of_one_task_are_compared(self, ner_archives, snli_archive):
        """Oracle: the names, and the message."""
        assert [archive.name for archive in compared_archives(*ner_archives)] == ["ner", "ner_elmo"]
        with pytest.raises(
            ValueError, match=r"must be of one task, but .* is of ner and .* of snli: name them without"
        ):
            compared_archives(ner_archives[0], snli_archive)

    def test_what_is_no_archive_of_a_task_is_refused_in_a_sentence(self, tmp_path, snli_archive):
        """Oracle: the messages, for nothing, for another file, and for the model of another project."""
        with pytest.raises(FileNotFoundError, match="but there is nothing"):
            TaskArchive.load(tmp_path / "none")
        (tmp_path / "text").write_text("hello")
        with pytest.raises(ValueError, match="must be the archive of a model"):
            TaskArchive.load(tmp_path / "text")

    def test_the_model_of_another_project_is_refused_in_a_sentence(self, monkeypatch, tmp_path):
        """Oracle: the message, for a config of AllenNLP's own tagger and for a biLM."""
        for name, remedy in (("simple_tagger", "'$"), ("elmo_bilm", "export it with `allennlp elmo-export`")):

            class Loaded:
                config = {"model": {"type": name}}  # noqa: RUF012

            monkeypatch.setattr("elmo_tasks.demo.task_archive.load_archive", lambda path: Loaded)
            with pytest.raises(ValueError, match=rf"must be one of elmo_ner, .*, but is '{name}.*{remedy}"):
                TaskArchive.load(tmp_path)


class TestTasks:
    def test_all_models_but_the_language_model_are_there(self):
        """Oracle: the registered names in the source of the models; the tasks of the tests."""
        source = "".join(path.read_text() for path in Path(models.__file__).parent.glob("*.py"))
        registered = set(re.findall(r'^@Model\.register\("(\w+)"', source, re.MULTILINE))
        assert registered - TASKS.keys() == {"elmo_bilm"}
        assert {task.name for task in TASKS.values()} == {*TASKS_OF_TESTS, "pos"}

    @pytest.mark.parametrize("task", sorted(TASKS_OF_TESTS.keys() - {"ner", "snli"}))
    def test_examples_of_the_other_tasks_are_predicted_and_shown(self, make_model, task):
        """Oracle: the words of the first example, which are all in the page; the prediction is JSON."""
        row = TASKS[f"elmo_{task}"]
        of_task = make_model(task, [])
        name = type(of_task.model).default_predictor
        predictor = Predictor.by_name(name)(of_task.model, of_task.reader, **dict(row.predictor_args))
        archive = TaskArchive(Path("model.tar.gz"), row, predictor)
        prediction = archive.predict(*row.examples[0])
        assert json.loads(json.dumps(prediction)) == prediction
        html = predictions_html(["x"], with_differences([row.view(prediction)]))
        if task != "sst":
            assert all(word in html for word in row.examples[0][-1].split()[:4])
