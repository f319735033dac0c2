import os

import h5py
import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.models import load_archive

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.vectors.elmo import Elmo
from tests.bilm.helpers import assert_layers_equal
from tests.bilm.many_langs.models import write_model
from tests.language_models import train_tiny
from tests.paths import TRAINING_CONFIGS
from tests.vectors.helpers import assert_all_equal

pytestmark = pytest.mark.slow

FILES = {"options.json", "weights.hdf5", "vocab.txt"}
SENTENCES = [["Washington", "crossed", "the", "river", "."], ["😀"]]


def assert_weights_equal(bilm: Bilm, expected: Bilm) -> None:
    weights = bilm.state_dict()
    for name, weight in expected.state_dict().items():
        assert torch.equal(weights[name], weight), name


class TestExport:
    def test_the_public_files_give_the_layers_of_the_model(self, lm_run, exported):
        from allennlp.modules.elmo import Elmo

        assert set(os.listdir(exported)) == FILES
        model = load_archive(lm_run / "model.tar.gz").model.eval()
        files = (exported / "options.json", exported / "weights.hdf5")
        character_ids = BYTES.batch(SENTENCES)
        with torch.no_grad():
            expected = list(model.bilm(character_ids).layers)
            layers = Bilm.from_files(*files)(character_ids).layers
            for layer, expected_layer in zip(layers, expected, strict=True):
                assert torch.equal(layer, expected_layer)
            # One layer at a time, by weights that softmax turns into 0 and 1.
            for index, expected_layer in enumerate(expected):
                weights = [-1000.0] * len(expected)
                weights[index] = 1000.0
                elmo = Elmo(*files, 1, dropout=0.0, scalar_mix_parameters=weights)
                (vectors,) = elmo(character_ids)["elmo_representations"]
                assert_layers_equal((expected_layer,), [vectors], atol=1e-5)

    def test_words_and_softmax_match_the_model(self, lm_run, exported):
        model = load_archive(lm_run / "model.tar.gz").model
        words = WordList.from_file(exported / "vocab.txt").words
        words_of_model = model.vocab.get_index_to_token_vocabulary("lm")
        assert dict(enumerate(words)) == words_of_model
        assert words[:3] == ("<S>", "</S>", "<UNK>")
        with h5py.File(exported / "weights.hdf5") as file:
            np.testing.assert_array_equal(file["softmax/W"], model.softmax.weight.detach().numpy())
            np.testing.assert_array_equal(file["softmax/b"], model.softmax.bias.detach().numpy())
        assert len(words) == len(model.softmax.bias)

    @pytest.mark.parametrize("name", ["hdf5", "safetensors"])
    def test_a_model_of_many_langs_becomes_a_folder_without_pickles(self, command, tmp_path, name):
        model = write_model(tmp_path / "model")
        command("elmo-export", model, tmp_path / "exported", "--format", name)
        assert set(os.listdir(tmp_path / "exported")) == {"options.json", f"weights.{name}"}
        vectors = Elmo.from_pretrained(tmp_path / "exported").embed(SENTENCES)
        assert_all_equal(vectors, Elmo.from_pretrained(model).embed(SENTENCES))

    def test_the_bilm_of_a_task_is_exported(self, command, tmp_path, archive):
        model = load_archive(archive("ner", "both", 3)).model
        (bilm,) = (module for module in model.modules() if isinstance(module, Bilm))
        folder = tmp_path / "exported"
        command("elmo-export", archive("ner", "both", 3), folder)
        assert set(os.listdir(folder)) == {"options.json", "weights.hdf5"}
        assert_weights_equal(Elmo.from_pretrained(folder, device="cpu").bilm, bilm)

    def test_it_can_be_half_as_large_and_without_softmax(self, lm_run, exported, command, tmp_path):
        command(
            "elmo-export", lm_run, tmp_path / "small", "--dtype", "float16", "--without-softmax"
        )
        with h5py.File(tmp_path / "small" / "weights.hdf5") as file:
            assert "softmax" not in file
            assert file["CNN_proj/W_proj"].dtype == np.float16
        with h5py.File(exported / "weights.hdf5") as file:
            assert file["CNN_proj/W_proj"].dtype == np.float32

    def test_safetensors_are_the_same_weights(
        self, lm_run, exported, command, tmp_path, environment
    ):
        folder = tmp_path / "other"
        command("elmo-export", lm_run, folder, "--format", "safetensors")
        assert set(os.listdir(folder)) == {"options.json", "weights.safetensors", "vocab.txt"}
        expected = Bilm.from_files(exported / "options.json", exported / "weights.hdf5")
        assert_weights_equal(Elmo.from_pretrained(folder, device="cpu").bilm, expected)
        environment.setenv("ELMO_TASKS_BILM", str(folder))
        config = Params.from_file(TRAINING_CONFIGS / "ner_elmo.jsonnet").as_dict(quiet=True)
        assert config["model"]["bilm"]["pretrained_file"] == str(folder / "weights.safetensors")

    def test_training_can_continue_from_an_exported_model(self, exported, environment, tmp_path):
        overrides = {
            "model.pretrained_file": str(exported / "weights.hdf5"),
            "vocabulary": {"type": "elmo_lm_from_file", "path": str(exported / "vocab.txt")},
            "trainer.optimizer": {"type": "sgd", "lr": 0.0},
            "trainer.callbacks": ["elmo_perplexity_before"],
        }
        metrics = train_tiny(tmp_path / "run", overrides)
        before = (tmp_path / "run" / "metrics_before.json").read_text()
        assert f'"perplexity": {metrics["best_validation_perplexity"]}' in before


def test_existing_files_are_kept(lm_run, command, tmp_path):
    (tmp_path / "vocab.txt").write_text("mine")
    with pytest.raises(SystemExit, match=str(tmp_path)):
        command("elmo-export", lm_run, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.txt"]
    command("elmo-export", lm_run, tmp_path, "--force")
    assert {path.name for path in tmp_path.iterdir()} == FILES
