"""Tests of elmo_tasks.compat.torch_files."""

import pickle
import zipfile

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_tasks.compat.torch_files import load_without_code


@pytest.fixture
def path(tmp_path):
    torch.save({"weight": torch.arange(5000.0)}, tmp_path / "model.th")
    return tmp_path / "model.th"


class TestLoadWithoutCode:
    def test_objects_are_refused_in_a_sentence(self, path):
        """Oracle: the message, with the file and the switch."""
        with open(path, "wb") as file:
            pickle.dump(zipfile.ZipInfo("a"), file)
        with pytest.raises(ConfigurationError, match=r"model\.th must hold tensors .* ELMO_TASKS_ALLOW_PICKLE=1"):
            load_without_code(path, path)
