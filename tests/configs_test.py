import json
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm.formats import read_any_options
from elmo_tasks.configs import config_variables, evaluate_file
from elmo_tasks.vectors.pretrained import NAMED_BILMS
from tests.bilm.many_langs.models import write_model
from tests.paths import CHECKOUT, SHIPPED_BILM, TINY_BILM, TRAINING_CONFIGS

NAMES = ("ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE", "ELMO_TASKS_BILM", "ELMO_TASKS_LAYER")
OPEN_VECTORS = CHECKOUT / "data" / "open" / "glove" / "glove.open.100d.txt.gz"
LIBRARY = TRAINING_CONFIGS / "lib" / "environment.libsonnet"


@pytest.fixture(autouse=True)
def nothing_set(environment: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in NAMES:
        environment.delenv(name, raising=False)
    return environment


def evaluated(path: Path, content: str, **ext_vars: str) -> dict:
    path.write_text(content)
    return json.loads(evaluate_file(str(path), ext_vars))


class TestConfigVariables:
    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["glove.6B.50d.txt"], "glove.6B.50d.txt"),
            # A file that is being written.
            (["glove.6B.50d.txt", "_tmp-1-glove.6B.100d.txt"], "glove.6B.50d.txt"),
            (["glove.6B.50d.txt", "glove.6B.100d.txt"], "glove.open.100d.txt.gz"),
            # Vectors that the package has.
            (["README.md"], str(OPEN_VECTORS)),
        ],
    )
    def test_the_only_file_of_vectors_is_taken(self, tmp_path, names, expected):
        (tmp_path / "glove").mkdir()
        for name in names:
            (tmp_path / "glove" / name).touch()
        variables = config_variables({"ELMO_TASKS_DATA": str(tmp_path)})
        assert variables["ELMO_TASKS_GLOVE"] == expected

    def test_the_defaults_are_the_included_files(self, fixtures_root):
        defaults = {
            "ELMO_TASKS_DATA": str(fixtures_root),
            "ELMO_TASKS_GLOVE": "glove.open.100d.txt.gz",
            "ELMO_TASKS_BILM": "small-open",
            "ELMO_TASKS_LAYER": "1",
        }
        assert config_variables() == defaults
        assert config_variables(dict.fromkeys(NAMES, "")) == defaults
        for name in NAMES[1:]:
            assert config_variables({name: "/some/where"}) == {**defaults, name: "/some/where"}


class TestEvaluateFile:
    def test_an_argument_takes_precedence_over_the_environment(self, nothing_set, tmp_path):
        nothing_set.setenv("ELMO_TASKS_DATA", "/environment")
        content = f"{{ path: (import '{LIBRARY}').data('x'), other: std.extVar('other') }}"
        file = tmp_path / "config.jsonnet"
        config = evaluated(file, content, other="value")
        assert config == {"path": "/environment/x", "other": "value"}
        config = evaluated(file, content, other="value", ELMO_TASKS_DATA="/argument")
        assert config == {"path": "/argument/x", "other": "value"}

    @pytest.mark.parametrize(
        "bilm", [None, "small-open", SHIPPED_BILM, f"{SHIPPED_BILM}/", TINY_BILM], ids=str
    )
    def test_the_options_of_the_bilm_are_a_part_of_the_config(self, nothing_set, tmp_path, bilm):
        if bilm is not None:
            nothing_set.setenv("ELMO_TASKS_BILM", str(bilm))
        folder = TINY_BILM if bilm == TINY_BILM else SHIPPED_BILM
        config = evaluated(tmp_path / "config.jsonnet", f"(import '{LIBRARY}').bilm")
        assert config["options"] == json.loads((folder / "options.json").read_text())
        assert config["pretrained_file"] == str(folder / "weights.hdf5")

    def test_the_config_also_has_the_options_of_a_many_langs_model(self, nothing_set, tmp_path):
        folder = write_model(tmp_path / "model")
        nothing_set.setenv("ELMO_TASKS_BILM", str(folder))
        content = f"local e = import '{LIBRARY}'; [e.bilm, e.contextual(e.bilm, null).indexer]"
        bilm, indexer = evaluated(tmp_path / "config.jsonnet", content)
        assert bilm["options"] == read_any_options(folder / "config.json").to_dict()
        assert bilm["pretrained_file"] == str(folder / "encoder.pkl")
        assert indexer == {"type": "elmo", "unicode_characters": 10}

    def test_a_published_bilm_is_downloaded_if_a_config_needs_it(
        self, nothing_set, training_configs, tmp_path
    ):
        nothing_set.setitem(NAMED_BILMS, "original", (f"{TINY_BILM.as_uri()}/",))
        nothing_set.setenv("ELMO_TASKS_HOME", str(tmp_path))
        nothing_set.setenv("ELMO_TASKS_BILM", "original")
        evaluate_file(str(training_configs / "ner.jsonnet"), {})
        assert not list(tmp_path.iterdir())
        config = evaluate_file(str(training_configs / "ner_elmo.jsonnet"), {})
        assert str(tmp_path / "original" / "weights.hdf5") in config

    @pytest.mark.parametrize(
        ("name", "width"),
        [
            ("glove.6B.100d.txt", 100),
            ("glove.840B.300d.txt.gz", 300),
            ("/data/glove/mine.v2.50d.txt", 50),
        ],
    )
    def test_the_width_of_glove_is_in_its_name(self, nothing_set, tmp_path, name, width):
        nothing_set.setenv("ELMO_TASKS_GLOVE", name)
        nothing_set.setenv("ELMO_TASKS_DATA", "/data")
        config = evaluated(tmp_path / "config.jsonnet", f"(import '{LIBRARY}').glove")
        assert config == {"file": f"/data/glove/{Path(name).name}", "width": width}

    @pytest.mark.parametrize(
        ("name", "value", "named"),
        [
            ("ELMO_TASKS_BILM", "smal-open", "ELMO_TASKS_BILM.*smal-open"),
            ("ELMO_TASKS_BILM", "BROKEN", "ELMO_TASKS_BILM.*options.json"),
            ("ELMO_TASKS_GLOVE", "vectors.txt", "ELMO_TASKS_GLOVE.*vectors.txt"),
        ],
    )
    def test_an_error_names_the_variable_and_its_value(
        self, nothing_set, training_configs, tmp_path, name, value, named
    ):
        for file in ("options.json", "weights.hdf5"):
            (tmp_path / file).write_text("not JSON")
        nothing_set.setenv(name, str(tmp_path) if value == "BROKEN" else value)
        with pytest.raises(ConfigurationError, match=named):
            evaluate_file(str(training_configs / "ner_elmo.jsonnet"), {})
