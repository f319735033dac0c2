"""Tests of the module that AllenNLP imports."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import _jsonnet
import allennlp.commands.train
import pytest
from allennlp.common import Params, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.common.from_params import infer_constructor_params

import elmo_tasks.plugin
from allennlp_today.trust.allowed import listed
from tests.paths import TRAINING_CONFIGS

_REGISTERED = re.compile(r'^@(\w+)\.register\(\s*"([^"]+)"', re.MULTILINE)


class TestPlugin:
    # Daily, the test of the wheel does, and so does each `allennlp elmo-...`.
    @pytest.mark.weekly
    def test_allennlp_finds_it_in_any_folder(self, tmp_path):
        code = "import allennlp.common.plugins as p, sys; p.import_plugins(); print('elmo_tasks.plugin' in sys.modules)"
        process = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
        )
        assert process.stdout.split()[-1] == "True", process.stderr

    def test_it_registers_all_our_classes(self):
        package = Path(elmo_tasks.plugin.__file__).parent
        expected = {
            (base, name, ".".join(("elmo_tasks", *path.relative_to(package).with_suffix("").parts)))
            for path in package.rglob("*.py")
            for base, name in _REGISTERED.findall(path.read_text(encoding="utf-8"))
        }
        bases = {base.__name__: base for base in Registrable.__subclasses__()}
        registered = {
            (base, name, bases[base].by_name(name).__module__) for base, name, _ in expected
        }
        assert ("Subcommand", "elmo-export", "elmo_tasks.commands.export") in expected
        assert registered == expected

    def test_each_number_in_a_config_is_listed(self):
        """
        Or an archive with it is refused. `numbers` has none that describe a machine, such as the
        size of a cache.
        """
        ours = elmo_tasks.plugin.HARMLESS
        known = {*ours["numbers"], *ours["machine"], *listed()["numbers"], *listed()["machine"]}
        unlisted = []
        for base, names in Registrable._registry.items():
            for name in ours.get(base.__name__, {}):
                cls, constructor = names[name]
                for parameter in infer_constructor_params(
                    cls, getattr(cls, constructor or "__init__")
                ).values():
                    kinds = {parameter.annotation, *get_args(parameter.annotation)}
                    if kinds & {int, float, bool} and parameter.name not in known:
                        unlisted.append(f"{name}: {parameter.name}")
        assert not unlisted

    def test_a_written_config_needs_none_of_it(self, environment, command, capsys, tmp_path):
        command("elmo-config", "ner_elmo", "-o", '{"trainer.num_epochs": 3}')
        (tmp_path / "ner_elmo.json").write_text(capsys.readouterr().out)
        (tmp_path / "search.jsonnet").write_text(
            "(import 'ner_elmo.json') { trainer+: { patience: 1 } }"
        )
        found = json.loads(_jsonnet.evaluate_file(str(tmp_path / "search.jsonnet")))
        expected = Params.from_file(TRAINING_CONFIGS / "ner_elmo.jsonnet").as_dict(quiet=True)
        assert found == {
            **expected,
            "trainer": {**expected["trainer"], "num_epochs": 3, "patience": 1},
        }

    @pytest.mark.parametrize(("model", "is_bilm"), [("elmo_bilm", True), ("elmo_ner", False)])
    def test_only_the_training_of_a_bilm_keeps_freed_memory(
        self, model, is_bilm, tmp_path, monkeypatch
    ):
        calls = []
        monkeypatch.setattr(elmo_tasks.plugin, "keep_freed_memory", lambda: calls.append(model))
        with pytest.raises(ConfigurationError, match="dataset_reader"):
            allennlp.commands.train.train_model(
                Params({"model": {"type": model}}), str(tmp_path / "run")
            )
        assert len(calls) == is_bilm
