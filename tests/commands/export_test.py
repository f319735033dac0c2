"""Tests of `allennlp elmo-export`."""

import os
import re
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.data import Vocabulary
from allennlp.models import Model, archive_model, load_archive

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.models import BilmLanguageModel
from elmo_tasks.vectors.elmo import Elmo
from tests.bilm.helpers import assert_layers_equal
from tests.bilm.many_langs.models import write_model
from tests.language_models import train_tiny
from tests.paths import TRAINING_CONFIGS, bilm_files

pytestmark = pytest.mark.slow

FILES = {"options.json", "weights.hdf5", "vocab.txt"}
SENTENCES = [["Washington", "crossed", "the", "river", "."], ["😀"]]


class TestExport:
    def test_the_public_files_say_what_the_model_says(self, lm_run, exported):
        """Oracle: all layers of the model of the archive; ours and AllenNLP's `Elmo` read the files."""
        from allennlp.modules.elmo import Elmo

        assert set(os.listdir(exported)) == FILES
        model = load_archive(lm_run / "model.tar.gz").model.eval()
        files = exported / "options.json", exported / "weights.hdf5"
        character_ids = sentences_to_character_ids(SENTENCES)
        with torch.no_grad():
            expected = list(model.bilm(character_ids).layers)
            ours = Bilm.from_files(*files)(character_ids).layers
            assert all(torch.equal(our, their) for our, their in zip(ours, expected, strict=True))
            # A mix of one layer each: weights that softmax turns into 0 and 1.
            for layer, vectors in enumerate(expected):
                weights = [1000.0 if index == layer else -1000.0 for index in range(len(expected))]
                elmo = Elmo(*files, 1, dropout=0.0, scalar_mix_parameters=weights)
                (theirs,) = elmo(character_ids)["elmo_representations"]
                assert_layers_equal((vectors,), [theirs], atol=1e-5)

    def test_words_and_softmax_are_the_models(self, lm_run, exported):
        """Oracle: the vocabulary of the archive by its numbers; the weights as h5py reads them."""
        model = load_archive(lm_run / "model.tar.gz").model
        words = WordList.from_file(exported / "vocab.txt").words
        assert list(words) == [model.vocab.get_token_from_index(number, "lm") for number in range(len(words))]
        assert words[:3] == ("<S>", "</S>", "<UNK>")
        with h5py.File(exported / "weights.hdf5") as file:
            np.testing.assert_array_equal(file["softmax/W"], model.softmax.weight.detach().numpy())
            np.testing.assert_array_equal(file["softmax/b"], model.softmax.bias.detach().numpy())
        assert len(words) == len(model.softmax.bias)

    @pytest.mark.parametrize("name", ["hdf5", "safetensors"])
    def test_a_model_of_many_langs_becomes_a_folder_without_pickles(self, command, tmp_path, name):
        """Oracle: the layers of the model, bit for bit."""
        model = write_model(tmp_path / "model")
        command("elmo-export", model, tmp_path / "exported", "--format", name)
        assert set(os.listdir(tmp_path / "exported")) == {"options.json", f"weights.{name}"}
        found, expected = (Elmo.from_pretrained(path).embed(SENTENCES) for path in (tmp_path / "exported", model))
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))

    def test_a_model_of_many_langs_with_a_file_missing_is_refused(self, error_of, tmp_path):
        """Oracle: the message names the file; nothing is written."""
        model = write_model(tmp_path / "model")
        (model / "token_embedder.pkl").unlink()
        message = error_of("elmo-export", model, tmp_path / "exported")
        assert "has no token_embedder.pkl: unpack the whole archive into one folder" in message
        assert not (tmp_path / "exported").exists()

    def test_the_folder_of_the_run_will_do_too(self, lm_run, exported, command, tmp_path):
        """Oracle: what the archive gives."""
        command("elmo-export", lm_run, tmp_path / "other")
        for name in FILES - {"weights.hdf5"}:
            assert (tmp_path / "other" / name).read_bytes() == (exported / name).read_bytes()

    def test_a_run_in_its_first_epoch_gives_its_last_checkpoint(self, lm_run, exported, command, tmp_path, capsys):
        """
        Oracle: the export of the finished run, whose weights stand under the names of a checkpoint here; before there
        is one, the message.
        """
        run = tmp_path / "unfinished"
        shutil.copytree(lm_run, run, ignore=shutil.ignore_patterns("*.th*", "*.gz*", "metrics*"))
        with pytest.raises(SystemExit, match="it has no checkpoint yet"):
            command("elmo-export", run, tmp_path / "target")
        weights = torch.load(lm_run / "best.th")
        # A frozen part of the weights is in a file of its own.
        frozen = {name: weights.pop(name) for name in list(weights)[:2]}
        torch.save(weights, run / "model_state_e0_b7.th")
        torch.save(frozen, run / "frozen_weights.th")
        (run / "training_state_e0_b7.th").touch()
        capsys.readouterr()
        command("elmo-export", run, tmp_path / "target")
        assert "has not ended its first epoch: this exports its last checkpoint" in capsys.readouterr().out
        found, expected = (Bilm.from_files(*bilm_files(folder)) for folder in (tmp_path / "target", exported))
        assert_layers_equal(found(SENTENCES).layers, expected(SENTENCES).layers, 0)

    def test_it_can_be_half_as_large_and_without_softmax(self, lm_run, exported, command, tmp_path):
        """Oracle: the types and the names in the file."""
        command("elmo-export", lm_run, tmp_path / "small", "--dtype", "float16", "--without-softmax")
        with h5py.File(tmp_path / "small" / "weights.hdf5") as file:
            assert "softmax" not in file
            assert file["CNN_proj/W_proj"].dtype == np.float16
        with h5py.File(exported / "weights.hdf5") as file:
            assert file["CNN_proj/W_proj"].dtype == np.float32

    @pytest.mark.parametrize("name", sorted(FILES))
    def test_files_that_are_there_stay(self, lm_run, exported, command, error_of, tmp_path, name):
        """Oracle: the message names the file and the remedy; the file; that the remedy is one."""
        folder = tmp_path / "other"
        folder.mkdir()
        (folder / name).write_text("mine")
        assert re.search(rf"{name} must not be there yet.*--force", error_of("elmo-export", lm_run, folder))
        assert [(path.name, path.read_text()) for path in folder.iterdir()] == [(name, "mine")]
        command("elmo-export", lm_run, folder, "--force")
        assert set(os.listdir(folder)) == FILES
        assert Bilm.from_files(folder / "options.json", folder / "weights.hdf5").num_layers == 3

    def test_another_model_is_refused(self, error_of, tmp_path):
        """Oracle: the message names what the model is."""
        (tmp_path / "run").mkdir()
        assert re.search(
            "must be an 'elmo_bilm' or an 'elmo_bilm_student', but is a NoLanguageModel",
            error_of("elmo-export", archive_of_another_model(tmp_path / "run"), tmp_path / "exported"),
        )
        assert not (tmp_path / "exported").exists()

    @pytest.mark.parametrize("name", ["none", "folder", "file.tar.gz", "no model", "no JSON"])
    def test_what_is_no_archive_is_refused(self, error_of, tmp_path, name):
        """Oracle: the message names it; nothing is written."""
        for folder, config in (("folder", None), ("no model", "{}"), ("no JSON", "{")):
            (tmp_path / folder).mkdir()
            if config is not None:
                (tmp_path / folder / "config.json").write_text(config)
        (tmp_path / "file.tar.gz").write_text("no archive")
        message = error_of("elmo-export", tmp_path / name, tmp_path / "exported")
        assert f"{name} must be the archive of a model, or the folder of its run, but cannot be loaded (" in message
        assert not (tmp_path / "exported").exists()

    def test_a_file_in_place_of_the_folder_is_an_error(self, lm_run, error_of, tmp_path):
        """Oracle: the message names it; the file."""
        (tmp_path / "file").write_text("mine")
        assert f"cannot be exported: {tmp_path / 'file'} must be a folder, but is another file" in error_of(
            "elmo-export", lm_run, tmp_path / "file"
        )
        assert (tmp_path / "file").read_text() == "mine"

    def test_what_float16_cannot_hold_leaves_nothing_behind(self, lm_run, error_of, tmp_path, monkeypatch):
        """Oracle: the message; no folder."""
        original = BilmLanguageModel.public_softmax
        monkeypatch.setattr(
            BilmLanguageModel, "public_softmax", lambda model: {k: v + 1e6 for k, v in original(model).items()}
        )
        assert re.search(
            r"cannot be exported: .* finite numbers .* torch\.float16",
            error_of("elmo-export", lm_run, tmp_path / "exported", "--dtype", "float16"),
        )
        assert not list(tmp_path.iterdir())

    def test_an_error_leaves_the_older_export(self, lm_run, exported, command, error_of, tmp_path, monkeypatch):
        """Oracle: the files of the older export after the words could not be written."""
        command("elmo-export", lm_run, tmp_path / "other")
        before = {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()}

        def full(self: WordList, path: Path) -> None:
            raise OSError(28, "No space left on device", str(path))

        monkeypatch.setattr(WordList, "save", full)
        assert "No space left" in error_of("elmo-export", lm_run, tmp_path / "other", "--force", "--dtype", "float16")
        assert {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()} == before
        assert not list(tmp_path.glob("_tmp-*"))

    def test_files_of_others_in_the_folder_stay(self, lm_run, error_of, tmp_path):
        """Oracle: the message names them; the folder."""
        (tmp_path / "mine.txt").write_text("mine")
        assert "must hold nothing else, since it is replaced as a whole, but holds mine.txt" in error_of(
            "elmo-export", lm_run, tmp_path, "--force"
        )
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

    def test_safetensors_are_the_same_weights(self, lm_run, exported, command, tmp_path, environment):
        """Oracle: the export in HDF5; `Elmo` and configs find them in the folder."""
        folder = tmp_path / "other"
        command("elmo-export", lm_run, folder, "--format", "safetensors")
        assert set(os.listdir(folder)) == {"options.json", "weights.safetensors", "vocab.txt"}
        expected = Bilm.from_files(exported / "options.json", exported / "weights.hdf5").state_dict()
        found = Elmo.from_pretrained(folder, device="cpu").bilm.state_dict()
        assert all(torch.equal(found[name], weight) for name, weight in expected.items())
        environment.setenv("ELMO_TASKS_BILM", str(folder))
        config = Params.from_file(TRAINING_CONFIGS / "ner_elmo.jsonnet").as_dict(quiet=True)
        assert config["model"]["bilm"]["pretrained_file"] == str(folder / "weights.safetensors")

    def test_an_exported_model_can_be_trained_on(self, exported, environment, tmp_path):
        """Oracle: with a learning rate of 0 the perplexity of the exported files stays what it was."""
        overrides = {
            "model.pretrained_file": str(exported / "weights.hdf5"),
            "vocabulary": {"type": "elmo_lm_from_file", "path": str(exported / "vocab.txt")},
            "trainer.optimizer": {"type": "sgd", "lr": 0.0},
            "trainer.callbacks": ["elmo_random_state", "elmo_perplexity_before"],
        }
        metrics = train_tiny(tmp_path / "run", overrides)
        before = (tmp_path / "run" / "metrics_before.json").read_text()
        assert f'"perplexity": {metrics["best_validation_perplexity"]}' in before


@Model.register("no_language_model")
class NoLanguageModel(Model):
    def forward(self) -> dict[str, torch.Tensor]:  # type: ignore[override]
        return {}


def archive_of_another_model(folder: Path) -> Path:
    model = NoLanguageModel(Vocabulary())
    (folder / "config.json").write_text(
        '{"model": {"type": "no_language_model"}, "dataset_reader": {"type": "elmo_lm"}}'
    )
    torch.save(model.state_dict(), folder / "best.th")
    model.vocab.save_to_files(str(folder / "vocabulary"))
    archive_model(str(folder))
    return folder / "model.tar.gz"
