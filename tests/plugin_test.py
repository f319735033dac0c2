"""Tests of the module that AllenNLP imports."""

import json
import re
import subprocess
import sys
from typing import get_args

import _jsonnet
import allennlp.commands.train
import pytest
from allennlp.common import Params, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.common.from_params import infer_constructor_params

import elmo_tasks.plugin
from allennlp_today.trust.allowed import harmless_toml
from tests.paths import CHECKOUT, PACKAGE, TRAINING_CONFIGS

IMPORT_PLUGINS = """
import sys
from allennlp.common.plugins import import_plugins
import_plugins()
print("elmo_tasks.plugin" in sys.modules)
"""
_REGISTERED = re.compile(r'^@(\w+)\.register\(\s*"([^"]+)"', re.MULTILINE)


class TestPlugin:
    # Daily, the test of the wheel does, and so does each `allennlp elmo-...`.
    @pytest.mark.weekly
    def test_allennlp_finds_it_in_any_folder(self, tmp_path):
        command = [sys.executable, "-c", IMPORT_PLUGINS]
        process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert process.stdout.split()[-1] == "True", process.stderr

    def test_it_registers_all_our_classes(self):
        bases = {base.__name__: base for base in Registrable.__subclasses__()}
        checked = set()
        for path in PACKAGE.rglob("*.py"):
            module = ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
            for base, name in _REGISTERED.findall(path.read_text(encoding="utf-8")):
                registered_class = bases[base].by_name(name)
                assert registered_class.__module__ == module, name
                checked.add(name)
        assert {"elmo-export", "elmo_ner"} <= checked

    def test_each_number_in_a_config_is_listed(self):
        """
        Or an archive with it is refused. `numbers` has none that describe a machine, such as the
        size of a cache.
        """
        ours = elmo_tasks.plugin.HARMLESS
        known: set[str] = set()
        for allowed in (ours, harmless_toml()):
            known.update(allowed["numbers"], allowed["machine"])
        unlisted = []
        for base, classes in Registrable._registry.items():
            for name in ours.get(base.__name__, {}):
                registered_class, constructor_name = classes[name]
                constructor = getattr(registered_class, constructor_name or "__init__")
                parameters = infer_constructor_params(registered_class, constructor)
                for parameter in parameters.values():
                    types = {parameter.annotation, *get_args(parameter.annotation)}
                    if types & {int, float, bool} and parameter.name not in known:
                        unlisted.append(f"{name}: {parameter.name}")
        assert not unlisted

    def test_a_written_config_needs_none_of_it(self, environment, command, capsys, tmp_path):
        command("elmo-config", "ner_elmo", "-o", '{"trainer.num_epochs": 3}')
        (tmp_path / "ner_elmo.json").write_text(capsys.readouterr().out)
        (tmp_path / "search.jsonnet").write_text(
            "(import 'ner_elmo.json') { trainer+: { patience: 1 } }"
        )
        config = json.loads(_jsonnet.evaluate_file(str(tmp_path / "search.jsonnet")))
        expected = Params.from_file(TRAINING_CONFIGS / "ner_elmo.jsonnet").as_dict(quiet=True)
        expected["trainer"] |= {"num_epochs": 3, "patience": 1}
        assert config == expected

    @pytest.mark.parametrize(("model", "is_bilm"), [("elmo_bilm", True), ("elmo_ner", False)])
    def test_only_the_training_of_a_bilm_keeps_freed_memory(
        self, model, is_bilm, tmp_path, monkeypatch
    ):
        calls = []
        monkeypatch.setattr(elmo_tasks.plugin, "keep_freed_memory", lambda: calls.append(model))
        params = Params({"model": {"type": model}})
        with pytest.raises(ConfigurationError, match="dataset_reader"):
            allennlp.commands.train.train_model(params, str(tmp_path / "run"))
        assert len(calls) == is_bilm
