import logging
import re
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.training import check_data_files, with_checked_files


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Params:
    """A config whose files all exist."""
    monkeypatch.setenv("ELMO_TASKS_DATA", str(tmp_path))
    for name in ("train", "dev", "test", "glove/glove.6B.50d.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return Params(
        {
            "train_data_path": f"{tmp_path}/train",
            "validation_data_path": f"{tmp_path}/dev",
            "test_data_path": f"{tmp_path}/test",
            "vocabulary": {"pretrained_files": {"tokens": f"{tmp_path}/glove/glove.6B.50d.txt"}},
        }
    )


class TestCheckDataFiles:
    def test_a_config_whose_files_exist_stays_as_it_is(self, params):
        """Oracle: a copy of the config."""
        before = params.duplicate().as_dict()
        check_data_files(params)
        assert params.as_dict() == before

    @pytest.mark.parametrize(
        "config",
        [
            {"train_data_path": "https://example.org/train", "validation_data_path": None},
            {"train_data_path": "lm/train*", "vocabulary": {"type": "from_files"}},
            {"train_data_path": {"one": "a"}},
        ],
    )
    def test_only_local_paths_are_looked_for(self, config):
        """Oracle: no error, and the config as it was."""
        params = Params(config)
        check_data_files(params)
        assert params.as_dict() == config

    @pytest.mark.parametrize(("name", "key"), [("train", "train_data_path"), ("dev", "validation_data_path")])
    def test_missing_data_is_an_error(self, params, tmp_path, name, key):
        """Oracle: the message says key, path, variable and remedy."""
        (tmp_path / name).unlink()
        root = re.escape(str(tmp_path))
        with pytest.raises(
            ConfigurationError, match=rf"{key} must .* '{root}/{name}' does not exist: .*ELMO_TASKS_DATA \(now '{root}'"
        ):
            check_data_files(params)

    def test_missing_test_data_is_dropped(self, params, tmp_path, caplog):
        """Oracle: the config without the key; the warning."""
        (tmp_path / "test").unlink()
        with caplog.at_level(logging.WARNING, logger="elmo_tasks"):
            check_data_files(params)
        assert "test_data_path" not in params
        assert f"{tmp_path}/test does not exist: this training has no test data" in caplog.messages

    def test_missing_test_data_to_evaluate_on_is_an_error(self, params, tmp_path):
        """Oracle: the message."""
        (tmp_path / "test").unlink()
        params["evaluate_on_test"] = True
        with pytest.raises(ConfigurationError, match=r"test_data_path must .* or drop evaluate_on_test"):
            check_data_files(params)

    def test_missing_word_vectors_are_an_error(self, params, tmp_path):
        """Oracle: the message says path, source, folder and variable."""
        (tmp_path / "glove" / "glove.6B.50d.txt").unlink()
        with pytest.raises(ConfigurationError) as error:
            check_data_files(params)
        for part in (f"{tmp_path}/glove/glove.6B.50d.txt", "nlp.stanford.edu", "glove.6B.100d.txt", "ELMO_TASKS_GLOVE"):
            assert part in str(error.value)


class TestWithCheckedFiles:
    def test_it_calls_what_it_guards_only_when_the_files_exist(self, params, tmp_path):
        """Oracle: the arguments and the result of the call."""
        guarded = with_checked_files(lambda *args, **kwargs: (args, kwargs))
        assert guarded(params, 7, force=True) == ((params, 7), {"force": True})
        (tmp_path / "train").unlink()
        with pytest.raises(ConfigurationError):
            guarded(params)

    @pytest.mark.slow
    def test_allennlps_training_is_guarded(self, environment, command, tmp_path, fixtures_root, training_configs):
        """Oracle: AllenNLP's command on data without a test file, which trains; and without vectors, which does not."""
        (tmp_path / "ner").mkdir()
        for part in ("train.txt", "dev.txt"):
            (tmp_path / "ner" / part).symlink_to(fixtures_root / "ner" / part)
        environment.setenv("ELMO_TASKS_DATA", str(tmp_path))
        arguments = (
            "train",
            training_configs / "ner.jsonnet",
            "-s",
            tmp_path / "run",
            "-o",
            '{"trainer.num_epochs": 1}',
        )
        with pytest.raises(ConfigurationError, match=r"the word vectors '.*/glove/.*' must exist"):
            command(*arguments)
        assert not (tmp_path / "run").exists()
        (tmp_path / "glove").symlink_to(fixtures_root / "glove")
        command(*arguments)
        assert (tmp_path / "run" / "model.tar.gz").is_file()
