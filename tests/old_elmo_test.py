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
        self.elmo = elmo
        self.other = other


def write(
    folder: Path, model: dict[str, Any], state: dict[str, torch.Tensor], *, is_zip: bool = True
) -> Path:
    """An archive of a model."""
    Vocabulary().save_to_files(str(folder / "vocabulary"))
    config = {"dataset_reader": {"type": "old_elmo_test_reader"}, "model": model}
    (folder / "config.json").write_text(json.dumps(config))
    torch.save(state, folder / "weights.th", _use_new_zipfile_serialization=is_zip)
    with tarfile.open(folder / "model.tar.gz", "w:gz") as tar:
        for name in ("config.json", "weights.th", "vocabulary"):
            tar.add(folder / name, name)
    return folder / "model.tar.gz"


def elmo_arguments() -> dict[str, Any]:
    options, weights = bilm_files(TINY_BILM)
    return {
        "options_file": str(options),
        "weight_file": str(weights),
        "num_output_representations": 1,
    }


class TestBringBackElmoEmbedder:
    def test_old_programs_find_the_class(self):
        import allennlp.commands.elmo
        from allennlp.commands.elmo import ElmoEmbedder

        assert ElmoEmbedder is elmo_tasks.ElmoEmbedder is allennlp.commands.elmo.ElmoEmbedder


class TestTakeElmoFromTheArchive:
    @pytest.mark.parametrize(
        ("prefix", "is_zip"), [("elmo.", True), ("field_embedder.elmo.inner.", False)]
    )
    def test_the_addresses_in_its_config_may_be_dead(
        self, command, tmp_path, monkeypatch, prefix, is_zip
    ):
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        elmo = AllenElmo(**elmo_arguments(), dropout=0.0)
        state = {f"{prefix}{name}": tensor for name, tensor in elmo.state_dict().items()}
        elmo_config = {
            "options_file": "http://127.0.0.1:9/options_file",
            "weight_file": "http://127.0.0.1:9/weight_file",
            "num_output_representations": 1,
            "dropout": 0.0,
        }
        config = {"type": "old_elmo_test_model", "elmo": elmo_config}
        path = write(tmp_path, config, state, is_zip=is_zip)
        command("elmo-export", path, tmp_path / "exported")
        (expected,) = Elmo.from_pretrained(TINY_BILM).embed([["The", "bank"]], layers="all")
        for bilm in (path, tmp_path / "exported"):
            (vectors,) = Elmo.from_pretrained(bilm).embed([["The", "bank"]], layers="all")
            np.testing.assert_allclose(vectors, expected, atol=1e-6)
        if is_zip:
            ids = batch_to_ids([["The", "bank"]])
            loaded = load_archive(path).model.elmo
            torch.testing.assert_close(
                loaded(ids)["elmo_representations"], elmo(ids)["elmo_representations"]
            )

    def test_several_come_from_their_addresses(self, tmp_path, monkeypatch):
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        elmo = elmo_arguments()
        config = {"type": "old_elmo_test_model", "elmo": elmo, "other": elmo}
        model = ElmoModel(Vocabulary(), AllenElmo(**elmo), AllenElmo(**elmo))
        path = write(tmp_path, config, model.state_dict())
        with pytest.raises(ConfigurationError, match="expected a file in the archive"):
            load_archive(path)
        assert load_archive(path, trusted=True).model.other.get_output_dim() == 16
        with pytest.raises(ValueError, match=r"one ELMo.*elmo.*other.*weights\.th"):
            Elmo.from_pretrained(path)
