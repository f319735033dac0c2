import pytest

from elmo_tasks.bilm.model_files import model_files, read_any_options, read_any_weights
from elmo_tasks.bilm.options import BilmOptions
from tests.bilm.many_langs.models import write_model
from tests.paths import TINY_BILM


class TestModelFiles:
    def test_both_formats_are_told_apart(self, tmp_path):
        """Oracle: the files by hand; which options have dictionaries."""
        folder = write_model(tmp_path / "model")
        assert model_files(folder) == (folder / "config.json", folder / "encoder.pkl")
        assert read_any_options(folder / "config.json").dictionaries is not None
        assert model_files(TINY_BILM) is None
        assert read_any_options(TINY_BILM / "options.json").dictionaries is None

    def test_options_of_the_other_format_are_refused(self, tmp_path):
        """Oracle: the message."""
        folder = write_model(tmp_path / "model")
        with pytest.raises(
            ValueError, match=r"encoder\.pkl: the weights of ELMoForManyLangs need the options of their"
        ):
            read_any_weights(folder / "encoder.pkl", BilmOptions.from_file(TINY_BILM / "options.json"))
