"""Tests of the module that AllenNLP imports."""

import re
from pathlib import Path

import allennlp.commands.train
import allennlp.common.params
import pytest
from allennlp.common import Params, Registrable
from allennlp.common.checks import ConfigurationError

import elmo_tasks.plugin

_REGISTERED = re.compile(r'^@(\w+)\.register\(\s*"([^"]+)"', re.MULTILINE)


class TestPlugin:
    def test_it_registers_all_our_classes(self):
        """Oracle: the decorators in the source; AllenNLP's registry, in which the names are ours."""
        package = Path(elmo_tasks.plugin.__file__).parent
        expected = {
            (base, name, ".".join(("elmo_tasks", *path.relative_to(package).with_suffix("").parts)))
            for path in package.rglob("*.py")
            for base, name in _REGISTERED.findall(path.read_text(encoding="utf-8"))
        }
        registered = {
            (base.__name__, name, found.__module__)
            for base, names in Registrable._registry.items()
            for name, (found, _) in names.items()
        }
        assert ("Subcommand", "elmo-embed", "elmo_tasks.commands.embed") in expected
        assert expected <= registered, expected - registered

    def test_configs_know_where_the_data_is(self, environment, tmp_path):
        """Oracle: the variable that the shell has set, and that AllenNLP's own function does not know the other."""
        (tmp_path / "config.jsonnet").write_text(
            '{bilm: std.extVar("ELMO_TASKS_BILM"), data: std.extVar("ELMO_TASKS_DATA")}'
        )
        environment.setenv("ELMO_TASKS_BILM", "here")
        config = Params.from_file(tmp_path / "config.jsonnet").as_dict(quiet=True)
        assert config["bilm"] == "here" and Path(config["data"]).is_dir()
        assert allennlp.common.params.evaluate_file is elmo_tasks.plugin.environment.evaluate_file

    def test_a_training_checks_its_data_once(self, tmp_path, caplog, logging_as_before):
        """
        Oracle: the errors of the function that AllenNLP's command calls: ours, with one remedy, for a missing test file
        that is needed, and AllenNLP's own for a config that has nothing else: after one warning, and after none if a
        file matches the pattern.
        """
        params = {"test_data_path": f"{tmp_path}/test*", "evaluate_on_test": True}
        with pytest.raises(ConfigurationError, match=r"test\* is not: put it there, or drop evaluate_on_test$"):
            allennlp.commands.train.train_model(Params(params), tmp_path / "run")
        for folder in ("first", "second"):
            with pytest.raises(ConfigurationError, match='key "dataset_reader" is required'):
                allennlp.commands.train.train_model(Params({**params, "evaluate_on_test": False}), tmp_path / folder)
            (tmp_path / "test.txt").touch()
        assert [line for line in caplog.messages if "test*" in line and "no test data" in line] == [
            f"{tmp_path}/test* does not exist: this training has no test data"
        ]
