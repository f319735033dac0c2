import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from allennlp.commands import main, predict
from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides


@Subcommand.register("errors-test", exist_ok=True)
class Fail(Subcommand):
    error: BaseException

    def add_subparser(self, parser):
        subparser = parser.add_parser(self.name)
        subparser.add_argument("--extend-vocab", action="store_true")
        subparser.set_defaults(func=self.fail)
        return subparser

    @staticmethod
    def fail(arguments):
        raise Fail.error


@pytest.fixture
def end_of(monkeypatch, logging_as_before):
    """The exit code of a command that raises an error, or the error if it is not caught."""

    def run(error: BaseException, *arguments: str) -> object:
        Fail.error = error
        monkeypatch.setattr(sys, "argv", ["allennlp", "errors-test", *arguments])
        with pytest.raises(BaseException) as ended:
            main(prog="allennlp")
        return ended.value.code if isinstance(ended.value, SystemExit) else ended.value

    return run


class TestEndInOneLine:
    @pytest.mark.parametrize(
        "error", [ConfigurationError("bad\n   key"), FileNotFoundError(2, "missing", "x.txt")]
    )
    def test_a_user_error_is_one_line(self, end_of, error):
        """Python prints a string code on stderr and exits with status 1."""
        line = end_of(error)
        assert line.startswith("allennlp errors-test: error: ") and "\n" not in line
        assert "bad key" in line or "x.txt" in line

    @pytest.mark.parametrize(
        ("error", "hint"),
        [
            (KeyError("'B-X' not found in vocab namespace 'labels'"), "different words or labels"),
            (
                IndexError("index 18 is out of bounds for dimension 1 with size 17"),
                "different words or labels",
            ),
            (
                ConfigurationError("Incompatible sizes found for parameter w"),
                "different words or labels",
            ),
            (
                ConfigurationError(
                    "Training configuration does not match the configuration we're recovering from."
                ),
                "config.json",
            ),
            (
                ValueError("a parameter group that doesn't match the size of optimizer's group"),
                "frozen",
            ),
            (ConfigurationError('key "data_loader" is required'), "AllenNLP 0.x"),
            (
                ImportError("cannot import name 'WordTokenizer' from 'allennlp.data.tokenizers'"),
                "different version",
            ),
            (
                AssertionError('No super class method found for "_instances_from_cache_file"'),
                "different version",
            ),
            (AssertionError("Torch not compiled with CUDA enabled"), "trainer.cuda_device"),
            (
                NotImplementedError("Our heuristic for guessing the right token ids failed."),
                "single_id",
            ),
        ],
    )
    def test_a_message_that_says_too_little_has_a_hint(self, end_of, error, hint):
        assert hint in end_of(error)

    @pytest.mark.parametrize(
        "message", ["index out of range in self", "Target 121 is out of bounds."]
    )
    def test_unknown_labels_have_a_hint_if_the_vocabulary_is_extended(self, end_of, message):
        error = IndexError(message)
        assert "new labels" in end_of(error, "--extend-vocab") and end_of(error) is error

    def test_other_errors_are_raised_unchanged(self, end_of):
        for error in (RuntimeError("broken"), ValueError("of the user's own code")):
            assert end_of(error) is error

    def test_the_traceback_is_shown_on_request(self, end_of, monkeypatch):
        monkeypatch.setenv("ALLENNLP_DEBUG", "1")
        error = ConfigurationError("bad")
        assert end_of(error) is error

    def test_ctrl_c_is_one_line(self, end_of, capsys):
        assert end_of(KeyboardInterrupt()) == 128 + signal.SIGINT
        assert "errors-test: interrupted" in capsys.readouterr().err

    @pytest.mark.weekly
    def test_bad_training_data_is_one_line(self, tmp_path):
        """The error occurs after training has set up its log."""
        (tmp_path / "bad.txt").write_text("word\n")
        config = {
            "dataset_reader": {"type": "conll2003"},
            "train_data_path": str(tmp_path / "bad.txt"),
            "model": {"type": "simple_tagger"},
            "data_loader": {"batch_size": 1},
            "trainer": {},
        }
        (tmp_path / "config.json").write_text(json.dumps(config))
        command = ["train", tmp_path / "config.json", "-s", tmp_path / "run"]
        process = subprocess.run(
            [Path(sys.executable).parent / "allennlp", *command],
            capture_output=True,
            text=True,
            env=dict(os.environ),
        )
        last = process.stderr.strip().splitlines()[-1]
        assert process.returncode == 1 and last.startswith("allennlp train: error: ")
        assert "Traceback" not in process.stderr


CONFIG = {"trainer": {"num_epochs": 9, "optimizer": "sgd"}, "model": {"layers": [{"width": 3}]}}


class TestWarnOfMistypedOverrides:
    def test_a_warning_names_the_nearest_key(self, caplog):
        with_overrides(CONFIG, {"trainer.num_epoch": 1})
        (message,) = caplog.messages
        assert "trainer.num_epoch " in message and "trainer.num_epochs" in message

    def test_a_key_of_a_number_is_the_error_of_allennlp(self):
        with pytest.raises(ValueError, match="expected list or dict"):
            with_overrides(CONFIG, {"trainer.num_epochs.x": 1})

    def test_valid_keys_give_no_warning(self, caplog):
        """One key is in the config; the other is not, but AllenNLP accepts it."""
        changed = with_overrides(CONFIG, {"trainer.num_epochs": 1, "trainer.patience": 2})
        assert changed["trainer"] == {"num_epochs": 1, "optimizer": "sgd", "patience": 2}
        assert caplog.get_records("call") == [] or logging.WARNING not in {
            r.levelno for r in caplog.records
        }


class TestReadPredictorInputLikeData:
    @staticmethod
    def lines_of(path: Path) -> list[dict]:
        lines: list[dict] = []
        predictor = SimpleNamespace(load_line=json.loads, predict_json=lines.append, dump_line=str)
        predict._PredictManager(predictor, str(path), None, 1, False, False).run()
        return lines

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
    def test_json_lines_may_have_a_byte_order_mark(self, tmp_path, encoding):
        lines = [{"sentence": "눈"}, {"sentence": "München"}]
        text = "\n \n".join(json.dumps(line, ensure_ascii=False) for line in lines)
        (tmp_path / "a.jsonl").write_text(text, encoding=encoding)
        assert self.lines_of(tmp_path / "a.jsonl") == lines

    def test_an_error_names_file_and_line(self, tmp_path):
        (tmp_path / "a.jsonl").write_text('{}\n{"sentence": "München"}\n', encoding="latin-1")
        with pytest.raises(ValueError, match=r"a\.jsonl, line 2"):
            self.lines_of(tmp_path / "a.jsonl")
