import gzip
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_tasks.distillation import run
from elmo_tasks.distillation.run import Distillation, distill
from elmo_tasks.models import Esim, NerTagger

STUDENT: dict[str, Any] = {
    "dataset_reader": {"type": "elmo_ner"},
    "train_data_path": "train",
    "model": {"type": "elmo_ner"},
    "data_loader": {"batch_size": 2},
}


@pytest.fixture
def archive(tmp_path) -> Path:
    """Passes for a teacher until it is loaded."""
    path = tmp_path / "teacher.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        made.add(__file__, "config.json")
    return path


class TestDistill:
    @pytest.mark.parametrize("student", ["elmo_ner", "elmo_srl"])
    def test_a_student_of_another_task_is_an_error(self, monkeypatch, tmp_path, archive, student):
        """Oracle: the message names both classes; nothing is made."""
        monkeypatch.setattr(run, "Teachers", lambda *args: SimpleNamespace(kind=Esim))
        (tmp_path / "text").write_text("a b\n")
        config = {**STUDENT, "model": {"type": student}}
        with pytest.raises(
            ValueError, match=r"the teacher is a Esim and the student a (NerTagger|SemanticRoleLabeler)"
        ):
            distill([archive], tmp_path / "text", config, tmp_path / "out", Distillation())
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("student", "message"),
        [
            ({"model": None}, "with 'model', but has none"),
            ({"data_loader": None}, "with 'data_loader', but has none"),
            ({"dataset_reader": None}, "with 'dataset_reader', but has none"),
            ({"model": {}}, "with a text as 'model.type', but has None"),
            ({"train_data_path": 1}, "with a text as 'train_data_path', but has 1"),
            ({"model": {"type": "elmo_ner", "label_namespace": "x"}}, "namespace 'labels', but its .* is 'x': omit it"),
            ({"data_loader": {"max_instances_in_memory": 9}}, "must be in memory, .*'max_instances_in_mem"),
        ],
    )
    def test_a_config_that_cannot_be_trained_is_an_error_at_once(self, tmp_path, student, message):
        """Oracle: the messages; nothing is made."""
        with pytest.raises(ConfigurationError, match=message):
            distill([], tmp_path / "text", {**STUDENT, **student}, tmp_path / "out", Distillation())
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(("changed", "who"), [("U-LOC", "student"), ("O", "student"), ("X", "teacher")])
    def test_a_teacher_with_other_labels_is_an_error_before_it_labels(
        self, monkeypatch, tmp_path, fixtures_root, archive, changed, who
    ):
        """Oracle: the message names the label; nothing is made. A label of the dev set counts, as in a vocabulary."""
        data = fixtures_root / "ner"
        read = DatasetReader.from_params(Params({"type": "elmo_ner"})).read
        instances = [instance for name in ("train", "dev") for instance in read(data / f"{name}.txt")]
        labels = sorted({tag for instance in instances for tag in instance["tags"].labels} ^ {changed})
        teachers = SimpleNamespace(kind=NerTagger, labels=labels, label=lambda *args, **options: pytest.fail("labels"))
        monkeypatch.setattr(run, "Teachers", lambda *args: teachers)
        (tmp_path / "text").write_text("a b\n")
        paths = {"train_data_path": str(data / "train.txt"), "validation_data_path": str(data / "dev.txt")}
        with pytest.raises(ValueError, match=f"must have the same labels, but only the {who} has {changed}: give a"):
            distill([archive], tmp_path / "text", {**STUDENT, **paths}, tmp_path / "out", Distillation())
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({}, "only the student has B-PER, "),
            # Nothing is looked at but what the vocabulary is made of.
            ({"datasets_for_vocab_creation": ["train"], "vocabulary": None}, None),
            ({"vocabulary": {"type": "extend"}}, None),
            ({"vocabulary": {"min_pretrained_embeddings": {"tokens": 9}}, "validation_dataset_reader": None}, "B-PER"),
            ({"test_data_path": "none.txt", "datasets_for_vocab_creation": ["train", "test"]}, None),
        ],
    )
    def test_labels_are_those_of_the_vocabulary(self, tmp_path, changes, error):
        """Oracle: by hand: labels that only the dev set has. Test data that is not there is left out."""
        labels = ["O", *(f"{tag}-LOC" for tag in "BILU")]
        (tmp_path / "train").write_text("Paris\tB-LOC\nis\tO\n")
        (tmp_path / "dev").write_text("Ann\tB-PER\n")
        paths = {"train_data_path": str(tmp_path / "train"), "validation_data_path": str(tmp_path / "dev")}
        config = {**STUDENT, "dataset_reader": {"type": "elmo_ner"}, **paths, **changes}
        if error is None:
            run._check_labels(config, labels)
        else:
            with pytest.raises(ValueError, match=error):
                run._check_labels(config, labels)

    def test_data_that_is_not_there_is_an_error_of_the_config(self, tmp_path, monkeypatch):
        """Oracle: the message of a training, with its remedy."""
        monkeypatch.setenv("ELMO_TASKS_DATA", str(tmp_path))
        config = {**STUDENT, "train_data_path": str(tmp_path / "ner" / "train.txt")}
        with pytest.raises(
            ConfigurationError,
            match=r"must have ner/train\.txt, which is the train_data_path, but does not: put it there",
        ):
            run._check_labels(config, ["O"])

    def test_a_text_that_is_cut_off_is_named_where_it_is_read(self, tmp_path):
        """Oracle: no error here."""
        whole = gzip.compress(b"a b c\n" * 99)
        (tmp_path / "text.gz").write_bytes(whole[: len(whole) // 2])
        run._check_text(tmp_path / "text.gz")

    def test_an_archive_is_no_text(self, tmp_path):
        """Oracle: the message, where the text was forgotten."""
        with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
            archive.add(__file__, "config.json")
        with pytest.raises(ValueError, match=r"but .*model.tar.gz is an archive: name a text after the teachers"):
            distill([tmp_path / "a"], tmp_path / "model.tar.gz", STUDENT, tmp_path / "out", Distillation())

    def test_a_text_is_no_teacher(self, tmp_path):
        """Oracle: the message, where the teacher was forgotten."""
        for name in ("a.txt", "b.txt"):
            (tmp_path / name).write_text("a b\n")
        with pytest.raises(ValueError, match=r"must be an archive, but .*a.txt is none: give the model\.tar\.gz"):
            distill([tmp_path / "a.txt"], tmp_path / "b.txt", STUDENT, tmp_path / "out", Distillation())

    def test_a_folder_is_no_teacher(self, tmp_path):
        """Oracle: the message says what to give."""
        (tmp_path / "b.txt").write_text("a b\n")
        with pytest.raises(ValueError, match=r"must be an archive, but .* is a folder: give its model\.tar\.gz"):
            distill([tmp_path], tmp_path / "b.txt", STUDENT, tmp_path / "out", Distillation())

    def test_a_teacher_that_is_not_there_is_an_error(self, tmp_path):
        """Oracle: the message says what the file is for; nothing is made."""
        (tmp_path / "b.txt").write_text("a b\n")
        with pytest.raises(FileNotFoundError, match=r"a teacher must be an archive, .* but .*a\.tar\.gz is not there"):
            distill([tmp_path / "a.tar.gz"], tmp_path / "b.txt", STUDENT, tmp_path / "out", Distillation())
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(
        ("content", "student", "message"),
        [
            (
                '{"words": ["a"]}\n{"word": ["b"]}\n',
                "elmo_ner",
                "line 2: a text must have a list of texts under 'words'",
            ),
            ('{"sentence1": "a"}\n', "elmo_snli", "line 1: a pair must have texts under"),
            ("\n", "elmo_ner", "must hold at least a sentence to learn from, but holds none"),
        ],
    )
    def test_a_line_of_another_form_is_an_error_before_anything_is_made(
        self, tmp_path, archive, monkeypatch, content, student, message
    ):
        """Oracle: the message; no teacher is loaded."""
        monkeypatch.setattr(run, "Teachers", lambda *args: pytest.fail("teachers are loaded"))
        (tmp_path / "text").write_text(content)
        with pytest.raises(ValueError, match=message):
            config = {**STUDENT, "model": {"type": student}}
            distill([archive], tmp_path / "text", config, tmp_path / "out", Distillation())
        assert not (tmp_path / "out").exists()

    def test_a_file_is_no_folder(self, tmp_path, archive):
        """Oracle: the message, and the file."""
        (tmp_path / "text").write_text("a b\n")
        with pytest.raises(ConfigurationError, match=r"must be a folder, but .*text is a file: name another"):
            distill([archive], tmp_path / "text", STUDENT, tmp_path / "text", Distillation())
        assert (tmp_path / "text").read_text() == "a b\n"

    def test_a_text_that_is_not_there_is_an_error_at_once(self, tmp_path):
        """Oracle: the message; nothing is made."""
        with pytest.raises(FileNotFoundError, match=r"must be a file, but .*text is none"):
            distill([], tmp_path / "text", STUDENT, tmp_path / "out", Distillation())
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("name", ["config.json", "best.th", "model_state_e1_b0.th", "training", "vocabulary"])
    def test_the_folder_of_another_run_is_left_alone(self, tmp_path, name):
        """Oracle: the message, and the file, or a folder with the name of one that a distillation replaces."""
        (tmp_path / name).write_text("mine")
        with pytest.raises(ConfigurationError, match=f"has the {name} of another run"):
            distill([], tmp_path / "text", STUDENT, tmp_path, Distillation())
        assert [path.name for path in tmp_path.iterdir()] == [name]


class TestDistillation:
    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({"temperature": -1}, "the temperature must be above 0, and finite, but is -1"),
            ({"temperature": float("inf")}, "the temperature must be above 0, and finite, but is inf"),
            ({"labelled_weight": 5.0}, r"--labelled-weight\) must be from 0 to 1, but is 5.0"),
        ],
    )
    def test_a_value_out_of_its_range_is_an_error(self, values, message):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=message):
            Distillation(**values)


class TestRecord:
    @pytest.fixture
    def write(self, tmp_path):
        """Begins a distillation in a folder: `write(temperature=1.0)`."""
        for name in ("teacher.tar.gz", "text"):
            (tmp_path / name).write_text(name)

        def begin(student: dict[str, Any] = STUDENT, **how: Any) -> None:
            with run._locked(tmp_path / "out"):
                run._write_record(
                    tmp_path / "out", [tmp_path / "teacher.tar.gz"], tmp_path / "text", student, Distillation(**how)
                )

        return begin

    def test_what_the_teacher_has_said_is_not_replaced(self, write, tmp_path):
        """Oracle: the message with both values; other settings of the student are no reason before it is trained."""
        write()
        (tmp_path / "out" / "teacher").mkdir()
        (tmp_path / "out" / "teacher" / "part-00000.npz").touch()
        with pytest.raises(ConfigurationError, match=r"another: temperature was 1\.0 and is 2\.0\. Give the same"):
            write(temperature=2.0)
        (tmp_path / "text").write_text("another")
        with pytest.raises(ConfigurationError, match="another: text was"):
            write()
        (tmp_path / "text").write_text("text")
        write(labelled_weight=0.1, student={**STUDENT, "trainer": {}})

    def test_a_damaged_record_may_be_written_again(self, write, tmp_path):
        """Oracle: the message; after the removal that it names, a record of the same files."""
        write()
        record = tmp_path / "out" / "distillation.json"
        before = record.read_text()
        (tmp_path / "out" / "teacher").mkdir()
        record.write_text("{")
        with pytest.raises(ConfigurationError, match=r"must be JSON.*remove this file, and the same command resumes"):
            write()
        record.unlink()
        write()
        assert record.read_text() == before

    def test_a_training_is_that_of_its_checkpoints(self, write, tmp_path):
        """Oracle: before the first checkpoint what is there is removed; after it another student is refused."""
        write()
        training = tmp_path / "out" / "training"
        training.mkdir()
        (training / "config.json").touch()
        write(loss="mse")
        assert not training.exists()
        training.mkdir()
        (training / "model_state_e0_b9.th").touch()
        with pytest.raises(ConfigurationError, match="another: loss was 'mse' and is 'cross_entropy'; student was"):
            write(student={**STUDENT, "trainer": {}})
        write(loss="mse")
        assert (training / "model_state_e0_b9.th").exists()

    def test_two_processes_do_not_work_in_one_folder(self, write, tmp_path):
        """Oracle: the message."""
        with run._locked(tmp_path / "out"), pytest.raises(BlockingIOError, match="is that of another process"):
            write()


class TestConfigOfTraining:
    def test_anchored_names_of_parameters_are_those_of_the_student(self):
        """Oracle: by hand; AllenNLP searches for them in names that begin with `student.`."""
        trainer = {
            "no_grad": ["^embedder\\.", "crf"],
            "optimizer": {"parameter_groups": [[["^(a|b)", "(^c)|^d|[^e]|(?:^f)"], {"lr": 1.0}]]},
        }
        config = run._config_of_training({**STUDENT, "trainer": trainer}, [], Path("t"), 1, "0", Distillation())
        assert config["trainer"]["no_grad"] == ["^student[.]embedder\\.", "crf"]
        ((patterns, options),) = config["trainer"]["optimizer"]["parameter_groups"]
        assert patterns == ["^student[.](a|b)", "(^student[.]c)|^student[.]d|[^e]|(?:^student[.]f)"] and options == {
            "lr": 1.0
        }
        assert trainer["no_grad"] == ["^embedder\\.", "crf"]
        # The same from another folder, so that a call may name the result in another way.
        assert config["data_loader"]["targets"] == str(Path("t").resolve())
        for optimizer in ("adam", None):
            student = {**STUDENT, "trainer": {"optimizer": optimizer}}
            config = run._config_of_training(student, [], Path("t"), 1, "0", Distillation())
            assert config["trainer"] == {"optimizer": optimizer, "checkpointer": {"type": "elmo_frozen_once"}}

    def test_checkpoints_are_whole_unless_the_student_says_otherwise(self):
        """Oracle: by hand; AllenNLP's own checkpointer loses the best epoch if it is killed before `best.th`."""
        own = {"checkpointer": {"type": "default"}}
        for given, expected in (({}, {"type": "elmo_frozen_once"}), (own, own["checkpointer"])):
            student = {**STUDENT, "trainer": given}
            config = run._config_of_training(student, [], Path("t"), 1, "0", Distillation())
            assert config["trainer"]["checkpointer"] == expected
        # AllenNLP's error says that it is missing.
        assert "trainer" not in run._config_of_training(STUDENT, [], Path("t"), 1, "0", Distillation())
