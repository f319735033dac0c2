import errno
import json
from unittest.mock import Mock

import pytest
from allennlp.models import load_archive
from allennlp.training import GradientDescentTrainer

from elmo_tasks.distillation import run
from tests.paths import TRAINING_CONFIGS


@pytest.fixture
def small(environment, small_ner):
    environment.setenv("ELMO_TASKS_DATA", str(small_ner))
    return json.dumps(
        {
            "trainer.num_epochs": 1,
            "model.encoders": [{"type": "elmo_lstm", "input_size": 228, "hidden_size": 8, "bidirectional": True}],
        }
    )


def _interrupt() -> None:
    raise KeyboardInterrupt


class TestDistill:
    @pytest.mark.slow
    def test_a_student_is_trained_and_its_archive_is_its_own(
        self, small, command, tmp_path, fixtures_root, monkeypatch, capsys
    ):
        """
        Oracle: the archive has the config and the class of the student, and evaluates as its training did; a second
        call into the folder is refused; one that was interrupted in its second epoch, or before the archive, resumes
        and has the metrics of both epochs.
        """
        config = TRAINING_CONFIGS / "ner.jsonnet"
        command("train", config, "-s", tmp_path / "teacher", "-o", small)
        call = ["elmo-distill", tmp_path / "teacher" / "model.tar.gz", fixtures_root / "lm" / "dev.txt"]
        of_student = json.dumps({**json.loads(small), "trainer.num_epochs": 2})
        call += ["--student", config, "-s", tmp_path / "student", "-o", of_student, "--max-texts", 30]
        train_epoch = GradientDescentTrainer._train_epoch
        with monkeypatch.context() as interrupted:
            # AllenNLP then makes an archive of the best epoch so far.
            of_epoch = lambda self, epoch: _interrupt() if epoch else train_epoch(self, epoch)  # noqa: E731
            interrupted.setattr(GradientDescentTrainer, "_train_epoch", of_epoch)
            with pytest.raises(SystemExit, match="130"):
                command(*call)
        assert (tmp_path / "student" / "training" / "model.tar.gz").exists()
        with monkeypatch.context() as full:
            full.setattr(run, "_write_archive", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
            with pytest.raises(SystemExit, match=r"elmo-distill: error: .*No space left"):
                command(*call)
        command(*call)
        assert "30 texts are labelled by 1 teacher" in capsys.readouterr().out
        archive = load_archive(tmp_path / "student" / "model.tar.gz")
        assert type(archive.model).__name__ == "NerTagger"
        metrics = json.loads((tmp_path / "student" / "metrics.json").read_text())
        assert metrics["training_distillation_loss"] > 0 and metrics["epoch"] == 1
        output = tmp_path / "evaluated.json"
        dev = archive.config["validation_data_path"]
        command("evaluate", tmp_path / "student" / "model.tar.gz", dev, "--output-file", output)
        assert json.loads(output.read_text())["loss"] == pytest.approx(metrics["best_validation_loss"], rel=1e-4)
        with pytest.raises(SystemExit, match=r"elmo-distill: error: .* must be a new folder or that of an interrupted"):
            command(*call)
        (tmp_path / "student" / "model.tar.gz").unlink()
        # Also where it was moved.
        (tmp_path / "student").rename(tmp_path / "moved")
        command(*(tmp_path / "moved" if each == tmp_path / "student" else each for each in call))
        assert (tmp_path / "moved" / "model.tar.gz").exists()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--max-texts", 0], "--max-texts must be at least 1, but is 0"),
            (["--batch-size", -1], "--batch-size must be at least 1, but is -1"),
            (["--temperature", 0], "the temperature must be above 0, and finite, but is 0.0"),
        ],
    )
    def test_a_value_out_of_range_is_one_line(self, environment, command, tmp_path, options, message):
        """Oracle: the message."""
        config = TRAINING_CONFIGS / "ner.jsonnet"
        with pytest.raises(SystemExit, match=message) as error:
            command("elmo-distill", "none.tar.gz", "none.txt", "--student", config, "-s", tmp_path / "s", *options)
        assert "\n" not in str(error.value)
