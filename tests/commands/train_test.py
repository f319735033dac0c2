"""Tests of what `allennlp train` checks first."""

import json
import logging
import shutil

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.configs import check_data, log_less


class TestCheckData:
    @pytest.fixture
    def config(self, environment, training_configs, fixtures_root, tmp_path) -> Params:
        """NER without ELMo on copies of the small data."""
        for name in ("ner", "glove"):
            shutil.copytree(fixtures_root / name, tmp_path / name)
        environment.setenv("ELMO_TASKS_DATA", str(tmp_path))
        return Params.from_file(training_configs / "ner.jsonnet")

    @pytest.mark.parametrize(
        "inputs",
        [
            {"train_data_path": "no.txt"},
            {"train_data_path": "no.txt[:80%]"},
            {"train_data_path": "no.txt[:20%+40%:]"},
            {"validation_data_path": {"one": "ner/dev.txt", "other": "no.txt"}},
            {"vocabulary": {"type": "elmo_lm_from_file", "path": "no.txt"}},
            {"vocabulary": {"pretrained_files": {"tokens": "no.txt"}}},
            {"model": {"embedders": [{"pretrained_file": "no.txt"}]}},
            {"test_data_path": "no.txt", "evaluate_on_test": True},
        ],
        ids=str,
    )
    def test_every_input_must_exist(self, config, tmp_path, inputs):
        params = Params(json.loads(json.dumps(inputs).replace("no.txt", f"{tmp_path}/no.txt")))
        with pytest.raises(ConfigurationError, match=r"no\.txt.*ELMO_TASKS_DATA"):
            check_data(params.duplicate())
        (tmp_path / "no.txt").touch()
        check_data(params)

    def test_data_that_are_null_are_none(self, config):
        overridden = {**config.as_dict(quiet=True), "test_data_path": None}
        params = Params({**overridden, "validation_data_path": None})
        check_data(params)
        assert {"train_data_path"} == {key for key in params if key.endswith("data_path")}

    def test_a_part_without_percent_is_an_error(self, config, tmp_path):
        params = Params({"train_data_path": f"{tmp_path}/ner/train.txt[:5]"})
        with pytest.raises(ConfigurationError, match=r"percent.*\[:5\]"):
            check_data(params)

    def test_missing_test_data_is_dropped(self, config, tmp_path, caplog):
        path = tmp_path / "ner" / "test.txt"
        path.unlink()
        params = Params({**config.as_dict(quiet=True), "evaluate_on_test": False})
        check_data(params)
        assert "test_data_path" not in params and "train_data_path" in params
        warnings = [
            record.getMessage() for record in caplog.records if record.levelname == "WARNING"
        ]
        assert [str(path) in warning for warning in warnings] == [True]

    def test_test_data_of_other_training_data_is_dropped(self, config, tmp_path, caplog):
        params = Params({**config.as_dict(quiet=True), "train_data_path": "export.json[:80%]"})
        check_data(params)
        assert "test_data_path" not in params
        assert "belongs to different training data" in caplog.text

    def test_test_data_elsewhere_is_left_to_its_reader(self):
        params = Params({"test_data_path": "https://example.org/test.txt"})
        check_data(params)
        assert "test_data_path" in params

    @pytest.mark.parametrize(
        ("name", "data", "warns"),
        [
            ("ner", {}, "ELMO_TASKS_DATA is not set"),
            ("bilm", {}, "ELMO_TASKS_DATA is not set"),
            # Your own data with the word vectors of the sample.
            (
                "ner",
                dict.fromkeys(
                    ["train_data_path", "validation_data_path", "test_data_path"], "a.json"
                ),
                "_GLOVE",
            ),
        ],
    )
    def test_a_warning_names_the_variable(
        self, environment, training_configs, caplog, name, data, warns
    ):
        check_data(Params.from_file(training_configs / f"{name}.jsonnet", json.dumps(data)))
        assert warns in caplog.text and ("small data" in caplog.text) == (not data)

    def test_a_distributed_training_does_not_evaluate(self):
        with pytest.raises(ConfigurationError, match="cannot evaluate_on_test"):
            check_data(Params({"distributed": {"cuda_devices": [0, 1]}, "evaluate_on_test": True}))

    def test_a_training_checks_its_data_first(self, config, command, training_configs, tmp_path):
        (tmp_path / "ner" / "dev.txt").unlink()
        with pytest.raises((ConfigurationError, SystemExit), match=r"dev\.txt does not exist"):
            command("train", training_configs / "ner.jsonnet", "-s", tmp_path / "run")
        assert not (tmp_path / "run").exists()


def test_a_training_logs_scores_but_not_each_setting(monkeypatch, caplog):
    monkeypatch.delenv("ALLENNLP_LOG_LEVEL", raising=False)
    names = (
        "allennlp.common.params",
        "allennlp.common.util",
        "allennlp.training.callbacks.console_logger",
    )
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        monkeypatch.setattr(logger, "filters", [])
    log_less()
    with caplog.at_level("INFO"):
        for logger in loggers:
            for message in (
                "model.type = x",
                "Metrics: {}",
                "f1-measure-PER | 0.1",
                "f1-measure-overall | 0.2",
            ):
                logger.info(message)
        loggers[0].warning("careful")
    kept = ["Metrics: {}", "f1-measure-overall | 0.2", "careful"]
    assert [record.getMessage() for record in caplog.records] == kept
