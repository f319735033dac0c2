"""Tests of the repairs of AllenNLP that are about ELMo."""

import json
import tarfile
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.dataset_readers import DatasetReader
from allennlp.models import Model
from allennlp.modules.elmo import Elmo as AllenElmo
from allennlp.modules.elmo import batch_to_ids

import elmo_tasks
from allennlp_today import load_archive
from elmo_tasks import Elmo
from tests.paths import TINY_BILM, bilm_files

HARMLESS = {
    "DatasetReader": {"old_elmo_test_reader": "reads nothing"},
    "Model": {"old_elmo_test_model": "tensors"},
}


@DatasetReader.register("old_elmo_test_reader", exist_ok=True)
class Reader(DatasetReader):
    pass


@Model.register("old_elmo_test_model", exist_ok=True)
class ElmoModel(Model):
    def __init__(
        self, vocab: Vocabulary, elmo: AllenElmo, other: Optional[AllenElmo] = None
    ) -> None:
        super().__init__(vocab)
        self.elmo, self.other = elmo, other


def write(
    folder: Path, model: dict[str, Any], state: dict[str, torch.Tensor], **format: Any
) -> Path:
    """An archive of a model."""
    Vocabulary().save_to_files(str(folder / "vocabulary"))
    config = {"dataset_reader": {"type": "old_elmo_test_reader"}, "model": model}
    (folder / "config.json").write_text(json.dumps(config))
    torch.save(state, folder / "weights.th", **format)
    with tarfile.open(folder / "model.tar.gz", "w:gz") as tar:
        for name in ("config.json", "weights.th", "vocabulary"):
            tar.add(folder / name, name)
    return folder / "model.tar.gz"


class TestBringBackElmoEmbedder:
    def test_old_programs_find_the_class(self):
        import allennlp.commands.elmo
        from allennlp.commands.elmo import ElmoEmbedder

        assert ElmoEmbedder is elmo_tasks.ElmoEmbedder is allennlp.commands.elmo.ElmoEmbedder


class TestTakeElmoFromTheArchive:
    @pytest.mark.parametrize(
        ("begin", "is_zip"), [("elmo.", True), ("field_embedder.elmo.inner.", False)]
    )
    def test_the_addresses_in_its_config_may_be_dead(
        self, command, tmp_path, monkeypatch, begin, is_zip
    ):
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        elmo = AllenElmo(*map(str, bilm_files(TINY_BILM)), 1, dropout=0.0)
        state = {f"{begin}{name}": tensor for name, tensor in elmo.state_dict().items()}
        dead = {name: f"http://127.0.0.1:9/{name}" for name in ("options_file", "weight_file")}
        config = {
            "type": "old_elmo_test_model",
            "elmo": {**dead, "num_output_representations": 1, "dropout": 0.0},
        }
        path = write(tmp_path, config, state, _use_new_zipfile_serialization=is_zip)
        command("elmo-export", path, tmp_path / "exported")
        (expected,) = Elmo.from_pretrained(TINY_BILM).embed([["The", "bank"]], layers="all")
        for bilm in (path, tmp_path / "exported"):
            (found,) = Elmo.from_pretrained(bilm).embed([["The", "bank"]], layers="all")
            np.testing.assert_allclose(found, expected, atol=1e-6)
        if is_zip:
            ids = batch_to_ids([["The", "bank"]])
            found, expected = (
                each(ids)["elmo_representations"][0]
                for each in (load_archive(path).model.elmo, elmo)
            )
            torch.testing.assert_close(found, expected)

    def test_several_come_from_their_addresses(self, tmp_path, monkeypatch):
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        files = dict(
            zip(("options_file", "weight_file"), map(str, bilm_files(TINY_BILM)), strict=True)
        )
        elmo = {**files, "num_output_representations": 1}
        state = {
            f"{name}.{key}": t
            for name in ("elmo", "other")
            for key, t in AllenElmo(**elmo).state_dict().items()
        }
        path = write(tmp_path, {"type": "old_elmo_test_model", "elmo": elmo, "other": elmo}, state)
        with pytest.raises(ConfigurationError, match="expected a file in the archive"):
            load_archive(path)
        assert load_archive(path, trusted=True).model.other.get_output_dim() == 16
        with pytest.raises(ValueError, match=r"one ELMo.*elmo.*other.*weights\.th"):
            Elmo.from_pretrained(path)
