import logging
from pathlib import Path
from typing import Any

import pytest
from allennlp.common import Params

from elmo_tasks.training import with_optional_test_data


def trained(**config: Any) -> tuple[dict[str, Any], tuple[Any, ...], dict[str, Any]]:
    """The config that a training gets, and its other arguments."""
    train = with_optional_test_data(lambda params, *args, **kwargs: (params.as_dict(), args, kwargs))
    return train(Params(config), 7, force=True)


class TestWithOptionalTestData:
    def test_missing_test_data_is_dropped(self, tmp_path, caplog):
        """Oracle: the config without the key; the other arguments; the warning."""
        with caplog.at_level(logging.WARNING, logger="elmo_tasks"):
            found = trained(train_data_path="a", test_data_path=f"{tmp_path}/test.txt")
        assert found == ({"train_data_path": "a"}, (7,), {"force": True})
        assert f"{tmp_path}/test.txt does not exist: this training has no test data" in caplog.messages

    @pytest.mark.parametrize(
        "config",
        [
            {"test_data_path": str(Path(__file__))},
            {"test_data_path": "https://example.org/test.txt"},
            {"test_data_path": "no_such_file", "evaluate_on_test": True},
            {"test_data_path": None},
            {"train_data_path": "no_such_file"},
        ],
        ids=str,
    )
    def test_all_other_configs_stay_as_they_are(self, config, caplog):
        """Oracle: the config; nothing in the log."""
        assert trained(**config)[0] == config
        assert not caplog.records

    @pytest.mark.slow
    def test_allennlp_trains_without_a_test_file(self, environment, command, tmp_path, fixtures_root, training_configs):
        """Oracle: the archive of AllenNLP's command, on data of one's own without `test.txt`."""
        (tmp_path / "ner").mkdir()
        for part in ("ner/train.txt", "ner/dev.txt", "glove"):
            (tmp_path / part).symlink_to(fixtures_root / part)
        environment.setenv("ELMO_TASKS_DATA", str(tmp_path))
        command("train", training_configs / "ner.jsonnet", "-s", tmp_path / "run", "-o", '{"trainer.num_epochs": 1}')
        assert (tmp_path / "run" / "model.tar.gz").is_file()
