"""Tests of the weights of ELMoForManyLangs: a whole model in, its layers out."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from elmo_tasks.bilm import Bilm
from tests.bilm.many_langs.models import SENTENCES, layers_by_hand, write_model

MODELS = {
    "both": {},
    "old-format": dict(is_new_format=False, n_highway=1),
    "characters": dict(word_dim=0, activation="tanh", max_characters=7),
    "words": dict(char_dim=0),
}


def read(folder: Path, *, stateful: bool = False) -> Bilm:
    bilm = Bilm.from_files(folder / "config.json", folder / "encoder.pkl", stateful=stateful)
    return bilm.requires_grad_(False)


def layers_of(bilm: Bilm, sentences: list[list[str]]) -> list[np.ndarray]:
    """Of each sentence, of shape `(n_layers, n_words, dim)`."""
    # Shape: (n_layers, batch_size, timesteps, dim)
    layers = np.stack([layer.numpy() for layer in bilm(sentences).layers])
    return [layers[:, row, : len(words)] for row, words in enumerate(sentences)]


def state_changed(folder: Path, name: str, **tensors: torch.Tensor | None) -> None:
    """Writes a file of a model with other tensors under the names of some; `None` for no tensor."""
    state = torch.load(folder / name)
    for key, tensor in tensors.items():
        key = next(known for known in state if known.replace(".", "_") == key)
        state.pop(key) if tensor is None else state.update({key: tensor})
    torch.save(state, folder / name)


class TestReadWeights:
    @pytest.mark.parametrize("model", MODELS)
    def test_the_layers_are_those_of_the_formulas(self, tmp_path, model):
        """Oracle: NumPy, in float64: `max_characters` cuts a word, and so does what is not in a dictionary."""
        folder = write_model(tmp_path / "model", **MODELS[model])
        for found, sentence in zip(layers_of(read(folder), SENTENCES), SENTENCES, strict=True):
            np.testing.assert_allclose(found, layers_by_hand(folder, sentence), rtol=0, atol=2e-6)

    def test_the_original_outputs_and_ids_come_out(self, reference):
        """Oracle: what the original code computes for each sentence alone: equal ids, layers within 2e-5."""
        folder = reference / "efml"
        sentences = json.loads((folder / "sentences.json").read_text())["sentences"]
        outputs = np.load(folder / "outputs.npz")
        bilm = read(folder / "model")
        encoder, n_kept = bilm.character_encoder, bilm.options.max_characters - 2
        together = layers_of(bilm, sentences)
        for row, sentence in enumerate(sentences):
            bounded = [word[:n_kept] for word in ["<bos>", *sentence, "<eos>"]]
            if encoder.words is not None:
                assert encoder.words.rows(bounded) == outputs[f"ids.{row:02}.words"].tolist()
            if encoder.characters is not None:
                assert np.array_equal(encoder.character_ids(bounded), outputs[f"ids.{row:02}.chars"])
            expected = outputs[f"alone.{row:02}.layers"]
            np.testing.assert_allclose(layers_of(bilm, [sentence])[0], expected, rtol=0, atol=2e-5)
            np.testing.assert_allclose(together[row], expected, rtol=0, atol=2e-5)

    def test_the_original_outputs_with_carried_states_come_out(self, reference):
        """
        Oracle: what the original code computes in one `Embedder`: all sentences twice, one sentence a call, and batches
        of five, each row of a batch in the state that the row before it left.
        """
        folder = reference / "efml"
        content = json.loads((folder / "sentences.json").read_text())
        sentences, outputs = content["sentences"], np.load(folder / "outputs.npz")
        # The original sorts the sentences of a call by length.
        all_rows = sorted(range(len(sentences)), key=lambda row: -len(sentences[row]))
        calls = {
            "again": [all_rows, all_rows],
            "calls": [[row] for row in range(len(sentences))],
            "fives": content["fives_batches"],
        }
        for kind, batches in calls.items():
            bilm, found = read(folder / "model", stateful=True), {}
            for rows in batches:
                found.update(zip(rows, layers_of(bilm, [sentences[row] for row in rows]), strict=True))
            for row, layers in found.items():
                np.testing.assert_allclose(layers, outputs[f"{kind}.{row:02}.layers"], rtol=0, atol=2e-5)

    def test_a_pickle_with_code_is_refused_and_not_run(self, tmp_path):
        """Oracle: the file that the code would make; the message names the file."""
        folder = write_model(tmp_path / "model")

        class Code:
            def __reduce__(self):
                return Path.touch, (tmp_path / "was-run",)

        (folder / "encoder.pkl").write_bytes(pickle.dumps(Code()))
        with pytest.raises(ValueError, match=r"encoder\.pkl must hold tensors alone, .* code, which was not run"):
            read(folder)
        torch.save({"projection.weight": Code()}, folder / "encoder.pkl")
        with pytest.raises(ValueError, match=r"encoder\.pkl must hold tensors alone, .* code, which was not run"):
            read(folder)
        assert not (tmp_path / "was-run").exists()

    @pytest.mark.parametrize("content", [b"", b"PK", b"not a pickle", pickle.dumps({})[:3]])
    @pytest.mark.parametrize("name", ["encoder.pkl", "token_embedder.pkl"])
    def test_a_damaged_file_is_named(self, tmp_path, name, content):
        """Oracle: the file in the message."""
        folder = write_model(tmp_path / "model")
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} must hold tensors alone, and be whole, but does not"):
            read(folder)

    def test_something_else_than_tensors_is_refused(self, tmp_path):
        """Oracle: the message."""
        folder = write_model(tmp_path / "model")
        torch.save({"a": 1}, folder / "encoder.pkl")
        with pytest.raises(
            ValueError, match=r"encoder\.pkl must hold tensors by their names, but holds something else"
        ):
            read(folder)

    @pytest.mark.parametrize("name", ["encoder.pkl", "token_embedder.pkl"])
    def test_a_missing_file_is_named(self, tmp_path, name):
        """Oracle: the file in the message."""
        folder = write_model(tmp_path / "model")
        (folder / name).unlink()
        with pytest.raises(FileNotFoundError, match=f"'{folder}' has no {name}"):
            read(folder)

    @pytest.mark.parametrize(("kind", "n_rows", "dim"), [("char", 20, 4), ("word", 10, 3)])
    def test_a_dictionary_of_another_model_is_named(self, tmp_path, kind, n_rows, dim):
        """Oracle: the dictionary and both sizes in the message."""
        folder = write_model(tmp_path / "model")
        keys = len((folder / f"{kind}.dic").read_text().splitlines())
        state_changed(folder, "token_embedder.pkl", **{f"{kind}_emb_layer_embedding_weight": torch.ones(99, dim)})
        message = rf"shape \({keys}, {dim}\).* but has \(99, {dim}\).*{kind}\.dic has {keys} keys, so that one of"
        with pytest.raises(ValueError, match=message):
            read(folder)

    @pytest.mark.parametrize(
        ("tensor", "message"),
        [
            (None, "the tensor 'forward_layer_0.state_projection.weight' is missing"),
            (torch.full((6, 5), torch.nan), "must hold finite numbers"),
            (torch.ones(6, 5, dtype=torch.int64), "but has .* and is int64"),
            (torch.ones(5, 6), r"must have the shape \(6, 5\)"),
        ],
    )
    def test_a_tensor_that_does_not_fit_is_named(self, tmp_path, tensor, message):
        """Oracle: the rule in the message."""
        folder = write_model(tmp_path / "model")
        state_changed(folder, "encoder.pkl", forward_layer_0_state_projection_weight=tensor)
        with pytest.raises(ValueError, match=rf"encoder\.pkl.*{message}|encoder\.pkl: {message}"):
            read(folder)
