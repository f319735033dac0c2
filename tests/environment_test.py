import json
import re
import shutil
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.bilm.many_langs import read_any_options
from elmo_tasks.environment import (
    check_data,
    config_variables,
    evaluate_file,
    glove_remedy,
    small_data_notice,
    with_checked_data,
)
from tests.bilm.many_langs.models import write_model
from tests.paths import SHIPPED_BILM, TINY_BILM

NAMES = ("ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE", "ELMO_TASKS_BILM", "ELMO_TASKS_LAYER")


@pytest.fixture(autouse=True)
def nothing_set(environment: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in NAMES:
        environment.delenv(name, raising=False)
    return environment


@pytest.fixture
def library(training_configs: Path) -> Path:
    return training_configs / "lib" / "environment.libsonnet"


def evaluated(path: Path, content: str, **ext_vars: str) -> dict:
    path.write_text(content)
    return json.loads(evaluate_file(str(path), ext_vars))


class TestConfigVariables:
    @pytest.mark.parametrize(
        ("names", "expected"),
        [
            (["glove.6B.50d.txt"], "glove.6B.50d.txt"),
            # As `elmo-data` leaves them.
            (["glove.6B.50d.txt", "glove.6B.50d.txt.sha256"], "glove.6B.50d.txt"),
            (["glove.6B.50d.txt", "_tmp-glove.6B.100d.txt"], "glove.6B.50d.txt"),
            (["_tmp-glove.6B.100d.txt"], "glove.open.100d.txt.gz"),
            (["glove.6B.50d.txt", "glove.6B.100d.txt"], "glove.open.100d.txt.gz"),
            (["README.md"], "glove.open.100d.txt.gz"),
        ],
    )
    def test_the_only_file_of_vectors_is_taken(self, nothing_set, tmp_path, names, expected):
        """Oracle: by hand: one file, several, none."""
        (tmp_path / "glove").mkdir()
        for name in names:
            (tmp_path / "glove" / name).touch()
        nothing_set.setenv("ELMO_TASKS_DATA", str(tmp_path))
        assert config_variables()["ELMO_TASKS_GLOVE"] == expected

    def test_what_is_not_set_is_what_ships(self, fixtures_root):
        """Oracle: the four values by hand; the files are there."""
        variables = config_variables()
        assert variables == {
            "ELMO_TASKS_DATA": str(fixtures_root),
            "ELMO_TASKS_GLOVE": "glove.open.100d.txt.gz",
            "ELMO_TASKS_BILM": "small-open",
            "ELMO_TASKS_LAYER": "1",
        }
        assert (fixtures_root / "glove" / variables["ELMO_TASKS_GLOVE"]).is_file()

    def test_a_tilde_that_no_shell_has_expanded_is_the_home_folder(self, nothing_set, tmp_path):
        """Oracle: by hand."""
        nothing_set.setenv("HOME", str(tmp_path))
        for name in ("ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE", "ELMO_TASKS_BILM"):
            nothing_set.setenv(name, "~/data")
            assert config_variables()[name] == str(tmp_path / "data")

    @pytest.mark.parametrize("name", NAMES)
    def test_the_environment_wins(self, nothing_set, name):
        """Oracle: the value that is set, and the defaults of the others; an empty one counts as not set."""
        defaults = config_variables()
        nothing_set.setenv(name, "")
        assert config_variables() == defaults
        nothing_set.setenv(name, "/some/where")
        assert config_variables() == {**defaults, name: "/some/where"}


class TestEvaluateFile:
    def test_a_config_has_the_data_of_the_environment(self, nothing_set, library, tmp_path):
        """Oracle: the path by hand."""
        nothing_set.setenv("ELMO_TASKS_DATA", "/data")
        config = evaluated(tmp_path / "config.jsonnet", f"{{ path: (import '{library}').data('ner/train.txt') }}")
        assert config == {"path": "/data/ner/train.txt"}

    @pytest.mark.parametrize("name", NAMES)
    def test_an_empty_variable_is_one_that_is_not_set(self, nothing_set, training_configs, name):
        """Oracle: the config without it; AllenNLP hands the environment to the evaluation, empty values too."""
        file = training_configs / "ner_elmo.jsonnet"
        expected = Params.from_file(file).as_dict(quiet=True)
        nothing_set.setenv(name, "")
        assert Params.from_file(file).as_dict(quiet=True) == expected

    def test_an_argument_takes_precedence_over_the_environment(self, nothing_set, library, tmp_path):
        """Oracle: the value of the argument."""
        nothing_set.setenv("ELMO_TASKS_DATA", "/environment")
        content = f"{{ path: (import '{library}').data('x'), other: std.extVar('other') }}"
        config = evaluated(tmp_path / "config.jsonnet", content, ELMO_TASKS_DATA="/argument", other="value")
        assert config == {"path": "/argument/x", "other": "value"}

    def test_the_options_of_the_bilm_are_a_part_of_the_config(
        self, nothing_set, library, tmp_path, fixtures_root, shipped_bilm
    ):
        """Oracle: the content of `options.json`, of the biLM that ships and of another."""
        content = f"(import '{library}').bilm"
        for folder in (shipped_bilm, TINY_BILM):
            nothing_set.setenv("ELMO_TASKS_BILM", str(folder))
            options = json.loads((folder / "options.json").read_text())
            weights = str(folder / "weights.hdf5")
            config = evaluated(tmp_path / "config.jsonnet", content)
            assert config == {"options": options, "pretrained_file": weights}

    def test_the_bilm_may_be_given_as_an_argument(self, library, tmp_path, fixtures_root):
        """Oracle: the content of its `options.json`."""
        folder = TINY_BILM
        content = f"(import '{library}').bilm.options"
        config = evaluated(tmp_path / "config.jsonnet", content, ELMO_TASKS_BILM=str(folder))
        assert config == json.loads((folder / "options.json").read_text())

    def test_a_model_of_many_langs_has_its_options_there_too(self, nothing_set, library, tmp_path):
        """Oracle: the options of the biLM, its weights, and what the token indexer needs to know; by hand."""
        folder = write_model(tmp_path / "model")
        nothing_set.setenv("ELMO_TASKS_BILM", str(folder))
        content = f"local e = import '{library}'; [e.bilm, e.indexer(e.bilm), e.indexer({{options: {{}}}})]"
        bilm, indexer, of_others = evaluated(tmp_path / "config.jsonnet", content)
        assert bilm["options"] == read_any_options(folder / "config.json").to_dict()
        assert bilm["pretrained_file"] == str(folder / "encoder.pkl")
        assert indexer == {"type": "elmo", "unicode_characters": 10}
        assert of_others == {"type": "elmo"}

    def test_a_bilm_may_be_named_as_in_from_pretrained(self, nothing_set, library, tmp_path):
        """Oracle: the biLM that ships, by its name and by its folder."""
        content = f"(import '{library}').bilm"
        by_default = evaluated(tmp_path / "config.jsonnet", content)
        for value in ("small-open", str(SHIPPED_BILM), f"{SHIPPED_BILM}/"):
            nothing_set.setenv("ELMO_TASKS_BILM", value)
            assert evaluated(tmp_path / "config.jsonnet", content) == by_default
        assert by_default["pretrained_file"] == str(SHIPPED_BILM / "weights.hdf5")

    def test_a_published_bilm_is_downloaded_where_a_config_needs_it(
        self, nothing_set, library, training_configs, tmp_path
    ):
        """Oracle: the names of the files that are downloaded, by a function in place of the network's: none for a
        baseline."""
        downloaded = []

        def download(url, file):
            downloaded.append(url.rsplit("_", 1)[-1])
            Path(file).write_bytes((TINY_BILM / Path(file).name).read_bytes())

        nothing_set.setattr("torch.hub.download_url_to_file", download)
        nothing_set.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        nothing_set.setenv("ELMO_TASKS_BILM", "original")
        evaluate_file(str(training_configs / "ner.jsonnet"), {})
        assert downloaded == []
        config = evaluated(tmp_path / "config.jsonnet", f"(import '{library}').bilm")
        assert downloaded == ["options.json", "weights.hdf5"]
        assert config["options"] == json.loads((TINY_BILM / "options.json").read_text())
        assert config["pretrained_file"] == str(tmp_path / "home" / "original" / "weights.hdf5")

    def test_a_relative_path_is_one_from_the_working_folder(self, nothing_set, library, tmp_path, fixtures_root):
        """Oracle: the options in a folder, and a config that lies elsewhere."""
        nothing_set.chdir(fixtures_root)
        nothing_set.setenv("ELMO_TASKS_BILM", "bilm_tiny")
        config = evaluated(tmp_path / "config.jsonnet", f"(import '{library}').bilm")
        assert config["options"]["lstm"]["projection_dim"] == 8
        assert config["pretrained_file"] == "bilm_tiny/weights.hdf5"

    @pytest.mark.parametrize("content", [None, "this is no JSON"], ids=["missing", "broken"])
    def test_a_bilm_without_options_is_an_error(self, nothing_set, library, tmp_path, content):
        """Oracle: the message names the variable, its value and the file."""
        nothing_set.setenv("ELMO_TASKS_BILM", str(tmp_path))
        match = rf"ELMO_TASKS_BILM must be the name of a biLM, or a folder.*{tmp_path}/options\.json"
        if content is not None:
            # Jsonnet's own error, which names the file.
            (tmp_path / "options.json").write_text(content)
            (tmp_path / "weights.hdf5").touch()
            match = rf"{tmp_path}/options\.json"
        with pytest.raises(ConfigurationError, match=match):
            evaluated(tmp_path / "config.jsonnet", f"(import '{library}').bilm")

    def test_a_baseline_needs_no_bilm(self, nothing_set, training_configs, tmp_path):
        """Oracle: no error, where a config with ELMo has one."""
        nothing_set.setenv("ELMO_TASKS_BILM", str(tmp_path))
        evaluate_file(str(training_configs / "ner.jsonnet"), {})
        with pytest.raises(ConfigurationError):
            evaluate_file(str(training_configs / "ner_elmo.jsonnet"), {})

    @pytest.mark.parametrize(
        ("name", "width"),
        [("glove.6B.100d.txt", 100), ("glove.840B.300d.txt.gz", 300), ("50d.txt", 50), ("vectors.d.25d.zip", 25)],
    )
    def test_the_width_of_glove_is_in_its_name(self, nothing_set, library, tmp_path, name, width):
        """Oracle: the number by hand."""
        nothing_set.setenv("ELMO_TASKS_GLOVE", name)
        nothing_set.setenv("ELMO_TASKS_DATA", "/data")
        config = evaluated(tmp_path / "config.jsonnet", f"(import '{library}').glove")
        assert config == {"file": f"/data/glove/{name}", "width": width}

    @pytest.mark.parametrize("name", ["vectors.txt", "glove.d.txt", "glove.6Bd.txt", "glove.50d.100d.txt"])
    def test_a_name_without_one_width_is_an_error(self, nothing_set, library, tmp_path, name):
        """Oracle: the message names the variable, the rule and the value."""
        nothing_set.setenv("ELMO_TASKS_GLOVE", name)
        with pytest.raises(ConfigurationError, match=rf"ELMO_TASKS_GLOVE must say the width.*but is {re.escape(name)}"):
            evaluated(tmp_path / "config.jsonnet", f"(import '{library}').glove.width")

    def test_other_imports_are_jsonnet_s_own(self, tmp_path):
        """Oracle: by hand: relative to the file, deeper and back, JSON and Jsonnet; a missing one is named."""
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "one.libsonnet").write_text("import '../two.json'")
        (tmp_path / "two.json").write_text('{"two": 2}')
        assert evaluated(tmp_path / "config.jsonnet", "import 'a/one.libsonnet'") == {"two": 2}
        with pytest.raises(ConfigurationError, match=r"three\.json"):
            evaluated(tmp_path / "config.jsonnet", "import 'three.json'")


class TestParamsFromFile:
    def test_allennlp_evaluates_configs_with_our_variables(self, nothing_set, training_configs, fixtures_root):
        """Oracle: AllenNLP's `Params.from_file`: no variable and no import is left, and the files are there."""
        nothing_set.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
        config = Params.from_file(training_configs / "ner_elmo.jsonnet").as_dict(quiet=True)
        text = json.dumps(config)
        assert "ELMO_TASKS" not in text
        paths = [path for path in re.findall(r'"([^"]*/[^"]*)"', text) if "/" in path]
        assert len(paths) >= 5
        assert [path for path in paths if not Path(path).is_file()] == []

    def test_the_ext_vars_of_allennlp_take_precedence_over_the_environment(
        self, nothing_set, training_configs, tmp_path
    ):
        """Oracle: the value in `ext_vars`, over the one in `os.environ`, which AllenNLP passes too."""
        nothing_set.setenv("ELMO_TASKS_DATA", "/environment")
        params = Params.from_file(training_configs / "ner.jsonnet", ext_vars={"ELMO_TASKS_DATA": "/argument"})
        assert params["train_data_path"] == "/argument/ner/train.txt"
        params = Params.from_file(training_configs / "ner.jsonnet")
        assert params["train_data_path"] == "/environment/ner/train.txt"


class TestCheckData:
    @pytest.fixture
    def config(self, nothing_set, training_configs, fixtures_root, tmp_path) -> Params:
        """NER without ELMo on data of one's own: copies of the small data."""
        for name in ("ner", "glove"):
            shutil.copytree(fixtures_root / name, tmp_path / name)
        nothing_set.setenv("ELMO_TASKS_DATA", str(tmp_path))
        return Params.from_file(training_configs / "ner.jsonnet")

    def test_data_of_ones_own_that_is_there_is_silent(self, config, caplog):
        """Oracle: no error, and nothing in the log."""
        check_data(config)
        assert caplog.text == ""

    def test_a_missing_file_is_named_with_its_folder(self, config, tmp_path):
        """Oracle: the message."""
        (tmp_path / "ner" / "train.txt").unlink()
        with pytest.raises(
            ConfigurationError,
            match=rf"{tmp_path} \(ELMO_TASKS_DATA\), must have ner/train.txt.*: put it there, or set ELMO_TASKS_DATA",
        ):
            check_data(config)

    @pytest.mark.parametrize(
        "inputs",
        [
            {"train_data_path": "no.txt"},
            {"validation_data_path": {"one": "ner/dev.txt", "other": "no.txt"}},
            {"vocabulary": {"type": "elmo_lm_from_file", "path": "no.txt"}},
            {"vocabulary": {"pretrained_files": {"tokens": "no.txt"}}},
            {"model": {"embedders": [{"pretrained_file": "no.txt"}]}},
        ],
        ids=str,
    )
    def test_every_input_must_be_there(self, config, tmp_path, inputs):
        """Oracle: the message names the file; with the file there is no error."""
        params = Params(json.loads(json.dumps(inputs).replace("no.txt", f"{tmp_path}/no.txt")))
        with pytest.raises(ConfigurationError, match=r"must have no\.txt.* but does not: put it there"):
            check_data(params)
        (tmp_path / "no.txt").touch()
        check_data(params)

    def test_outputs_need_not_be_there(self, config, tmp_path):
        """Oracle: no error for folders below that of the data which the training makes; nothing in them."""
        params = Params(
            {
                "model": {"bilm": {"cache_folder": f"{tmp_path}/cache"}},
                "trainer": {"callbacks": [{"type": "mine", "path": f"{tmp_path}/out", "files": [f"{tmp_path}/log"]}]},
            }
        )
        check_data(params)
        assert not (tmp_path / "cache").exists()

    def test_missing_test_data_is_dropped(self, config, tmp_path, caplog):
        """Oracle: the config without the key; the warning, which is the only one."""
        path = tmp_path / "ner" / "test.txt"
        path.unlink()
        params = Params({**config.as_dict(quiet=True), "evaluate_on_test": False})
        check_data(params)
        assert "test_data_path" not in params and "train_data_path" in params
        warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert warnings == [f"{path} does not exist: this training has no test data"]

    def test_test_data_that_is_evaluated_must_be_there(self, tmp_path):
        """Oracle: the message with its remedy, wherever the data is."""
        params = Params({"test_data_path": f"{tmp_path}/test.txt", "evaluate_on_test": True})
        with pytest.raises(ConfigurationError, match=r"/test\.txt is not: put it there, or drop evaluate_on_test"):
            check_data(params)

    @pytest.mark.parametrize("name", ["test.txt", "te*.txt", "*/test.txt", "folder", "[a].txt"])
    def test_test_data_that_is_there_is_kept(self, tmp_path, caplog, name):
        """Oracle: the config; nothing in the log. A file, two patterns, a folder, a file that looks like a pattern."""
        for folder in (tmp_path, tmp_path / "folder"):
            folder.mkdir(exist_ok=True)
            (folder / "test.txt").touch()
        (tmp_path / "[a].txt").touch()
        config = {"test_data_path": str(tmp_path / name)}
        for is_evaluated in (False, True):
            params = Params({**config, "evaluate_on_test": is_evaluated})
            check_data(params)
            assert params["test_data_path"] == config["test_data_path"]
        assert caplog.text == ""

    @pytest.mark.parametrize(
        "path", ["https://example.org/test.txt", "squad.zip!test.json", "balanced_test", None], ids=str
    )
    def test_test_data_elsewhere_is_left_to_allennlp(self, path, caplog):
        """Oracle: the config; nothing in the log."""
        params = Params({"test_data_path": path, "evaluate_on_test": True})
        check_data(params)
        assert params.as_dict(quiet=True) == {"test_data_path": path, "evaluate_on_test": True}
        assert caplog.text == ""

    @pytest.mark.slow
    def test_allennlp_trains_without_a_test_file(self, nothing_set, command, tmp_path, small_ner, training_configs):
        """Oracle: the archive of AllenNLP's command, on data of one's own without `test.txt`."""
        (tmp_path / "ner").mkdir()
        for part in ("ner/train.txt", "ner/dev.txt", "glove"):
            (tmp_path / part).symlink_to(small_ner / part)
        nothing_set.setenv("ELMO_TASKS_DATA", str(tmp_path))
        command("train", training_configs / "ner.jsonnet", "-s", tmp_path / "run", "-o", '{"trainer.num_epochs": 1}')
        assert (tmp_path / "run" / "model.tar.gz").is_file()

    def test_missing_vectors_are_told_with_their_source(self, config, tmp_path):
        """Oracle: the message without a folder of vectors, and with another file in it."""
        (tmp_path / "glove" / "glove.open.100d.txt.gz").rename(tmp_path / "glove" / "glove.6B.50d.txt")
        with pytest.raises(ConfigurationError, match=r"choose one of glove.6B.50d.txt with ELMO_TASKS_GLOVE"):
            check_data(config)
        shutil.rmtree(tmp_path / "glove")
        with pytest.raises(ConfigurationError, match=r"nlp\.stanford\.edu/projects/glove.*ELMO_TASKS_GLOVE"):
            check_data(config)

    def test_a_pattern_is_there_if_a_file_matches(self, nothing_set, training_configs, fixtures_root, tmp_path):
        """Oracle: the config of a language model with its text and without."""
        nothing_set.setenv("ELMO_TASKS_DATA", str(tmp_path))
        config = Params.from_file(training_configs / "bilm.jsonnet")
        with pytest.raises(ConfigurationError, match=r"must have lm/train\*"):
            check_data(config)
        shutil.copytree(fixtures_root / "lm", tmp_path / "lm")
        check_data(config)

    @pytest.mark.parametrize("value", [None, ""])
    def test_the_small_data_is_logged_unless_it_was_asked_for(
        self, nothing_set, training_configs, fixtures_root, caplog, value
    ):
        """Oracle: the line in the log, which names the data and the remedy; with the variable set there is none."""
        if value is not None:
            nothing_set.setenv("ELMO_TASKS_DATA", value)
        config = Params.from_file(training_configs / "ner.jsonnet")
        check_data(config)
        assert f"the small data that ships, {fixtures_root}" in caplog.text and "Set ELMO_TASKS_DATA" in caplog.text
        caplog.clear()
        nothing_set.setenv("ELMO_TASKS_DATA", str(fixtures_root))
        check_data(config)
        assert caplog.text == "" and small_data_notice() is None

    def test_what_is_trained_elsewhere_is_left_alone(self, nothing_set, caplog):
        """Oracle: no error and no line for a config without a file of the data."""
        check_data(Params({"train_data_path": "/nowhere/train.txt", "model": {"layers": [1, None]}}))
        assert caplog.text == ""

    def test_a_training_checks_its_data_first(self, config, tmp_path):
        """Oracle: a function in place of the training, which is not called."""
        called = []
        train = with_checked_data(lambda params, *args, **kwargs: called.append((args, kwargs)))
        train(config, "folder", force=True)
        assert called == [(("folder",), {"force": True})]
        (tmp_path / "ner" / "dev.txt").unlink()
        with pytest.raises(ConfigurationError, match=r"ner/dev\.txt"):
            train(config, "folder")
        assert len(called) == 1


class TestGloveRemedy:
    def test_it_names_the_files_or_their_source(self, tmp_path):
        """Oracle: the message without a folder of vectors, and with two files in it."""
        folder = tmp_path / "glove"
        assert re.search(r"nlp\.stanford\.edu/projects/glove.*ELMO_TASKS_GLOVE", glove_remedy(folder))
        folder.mkdir()
        for name in ("glove.6B.50d.txt", "glove.6B.100d.txt"):
            (folder / name).touch()
        assert "choose one of glove.6B.100d.txt, glove.6B.50d.txt with ELMO_TASKS_GLOVE" in glove_remedy(folder)
