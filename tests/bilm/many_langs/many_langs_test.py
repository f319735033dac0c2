import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from allennlp.data import Token, Vocabulary
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from elmo_tasks.bilm import Bilm, BilmOptions, BilmOutput
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.formats import read_any_options
from elmo_tasks.bilm.many_langs import model_files, word_to_code_points
from elmo_tasks.bilm.options import DictionaryOptions
from elmo_tasks.data.token_indexers import ElmoTokenIndexer
from elmo_tasks.vectors.elmo import Elmo
from tests.bilm.many_langs.models import CHARACTERS, SENTENCES, WORDS, layers_by_hand, write_model
from tests.paths import REFERENCE

MODELS = {
    "both": {},
    "old-format": dict(is_new_format=False, n_highway=1),
    "characters": dict(word_dim=0, activation="tanh", max_characters=7),
    "words": dict(char_dim=0),
}


def read(folder: Path) -> Bilm:
    return Bilm.from_files(folder / "config.json", folder / "encoder.pkl").requires_grad_(False)


def layers_of(bilm: Bilm, sentences: list[list[str]]) -> list[np.ndarray]:
    """For each sentence, of shape `(n_layers, n_words, dim)`."""
    rows = bilm.word_rows
    # `rows.batch` would refuse the empty word, which the original outputs include.
    ids = []
    for sentence in sentences:
        array = np.array([rows.row_of(word) for word in sentence]).reshape(-1, rows.width)
        ids.append(torch.tensor(array).long())
    output = bilm(pad_sequence(ids, batch_first=True))
    # Shape: (n_layers, batch_size, timesteps, dim)
    layers = np.stack([layer.numpy() for layer in output.layers])
    return [layers[:, row, : len(words)] for row, words in enumerate(sentences)]


def assert_same(output: BilmOutput, expected: BilmOutput) -> None:
    for layer, expected_layer in zip(output.layers, expected.layers, strict=True):
        assert torch.equal(layer, expected_layer)


@pytest.fixture
def folder(tmp_path):
    return write_model(tmp_path / "model")


@pytest.fixture(scope="module")
def bilm(tmp_path_factory) -> Bilm:
    return read(write_model(tmp_path_factory.mktemp("model")))


class TestLayers:
    @pytest.mark.parametrize("model", MODELS)
    def test_they_match_the_formulas(self, tmp_path, model):
        folder = write_model(tmp_path / "model", **MODELS[model])
        for layers, sentence in zip(layers_of(read(folder), SENTENCES), SENTENCES, strict=True):
            expected = layers_by_hand(folder, sentence)
            np.testing.assert_allclose(layers, expected, rtol=1e-5, atol=1e-5)

    def test_outputs_and_ids_equal_the_original_ones(self):
        """
        Compared with the original code on each sentence alone: equal ids, and layers to within
        2e-5.
        """
        folder = REFERENCE / "efml"
        sentences = json.loads((folder / "sentences.json").read_text())["sentences"]
        outputs = np.load(folder / "outputs.npz")
        bilm = read(folder / "model")
        encoder = bilm.character_encoder
        n_kept = bilm.options.dictionaries.max_characters - 2
        together = layers_of(bilm, sentences)
        for row, sentence in enumerate(sentences):
            bounded = [word[:n_kept] for word in ["<bos>", *sentence, "<eos>"]]
            assert encoder.words.rows(bounded) == outputs[f"ids.{row:02}.words"].tolist()
            assert np.array_equal(encoder.character_ids(bounded), outputs[f"ids.{row:02}.chars"])
            expected = outputs[f"alone.{row:02}.layers"]
            (alone,) = layers_of(bilm, [sentence])
            np.testing.assert_allclose(alone, expected, rtol=0, atol=2e-5)
            np.testing.assert_allclose(together[row], expected, rtol=0, atol=2e-5)

    @pytest.mark.parametrize("name", ["weights.hdf5", "weights.safetensors"])
    def test_a_model_is_read_as_it_was_written(self, bilm, tmp_path, name):
        bilm.save(tmp_path / "options.json", tmp_path / name)
        read_back = Bilm.from_files(tmp_path / "options.json", tmp_path / name)
        assert_same(read_back.requires_grad_(False)(SENTENCES), bilm(SENTENCES))

    def test_its_state_has_the_dictionaries(self, bilm):
        fresh = Bilm(bilm.options).requires_grad_(False)
        fresh.load_state_dict(bilm.state_dict())
        assert_same(fresh(SENTENCES), bilm(SENTENCES))
        assert_same(pickle.loads(pickle.dumps(bilm))(SENTENCES), bilm(SENTENCES))
        assert_same(bilm(bilm.word_rows.batch(SENTENCES)), bilm(SENTENCES))

    def test_each_parameter_has_a_gradient(self, bilm):
        trained = Bilm(bilm.options)
        trained.load_state_dict(bilm.state_dict())
        loss = sum(layer.square().sum() for layer in trained(SENTENCES).layers)
        loss.backward()
        for name, weight in trained.named_parameters():
            assert weight.grad is not None, name
            assert weight.grad.any(), name

    @given(st.text(min_size=1, max_size=12), st.integers(3, 9))
    def test_a_row_is_the_code_points_of_a_word(self, word, width):
        row = word_to_code_points(word, width)
        n_kept = min(len(word), width - 2)
        code_points = [302 + ord(character) for character in word[:n_kept]]
        expected = [300, *code_points, 301]
        assert row.tolist() == expected + [0] * (width - len(expected))


class TestFiles:
    def test_the_options_match_the_files(self, folder):
        options = read_any_options(folder / "config.json")
        assert options == BilmOptions(
            cell_dim=5,
            projection_dim=6,
            cell_clip=0.6,
            projection_clip=0.7,
            character_dim=4,
            filters=((1, 3), (2, 2), (4, 3)),
            dictionaries=DictionaryOptions(
                n_characters=len(CHARACTERS), n_words=len(WORDS), word_dim=3, max_characters=10
            ),
        )
        assert BilmOptions.from_dict(options.to_dict()) == options

    def test_the_network_of_the_published_models_is_known(self, tmp_path):
        """
        Characters have 50 units and words 100. The archives do not contain the file that describes
        the network.
        """
        folder = write_model(tmp_path / "model", network=None)
        path = "/users4/conll18st/elmo/configs/cnn_50_100_512_4096_sample.json"
        (folder / "config.json").write_text(json.dumps({"config_path": path}))
        sizes = DictionaryOptions(n_characters=len(CHARACTERS), n_words=len(WORDS), word_dim=100)
        options = BilmOptions(character_dim=50, dictionaries=sizes)
        assert read_any_options(folder / "config.json") == options

    @pytest.mark.parametrize(
        ("text", "keys"),
        [
            ("b\t1\r\na\t0\r\n", ["a", "b"]),
            ("a\t0\n\u3000\t1\n", ["a", "\u3000"]),
            # Like the original, it reads any white space as this one.
            ("a\t0\n\u00a0\t1\n", ["a", "\u3000"]),
            ("a\t0\n1\n", ["a", "\u3000"]),
            ("New York\t0\n\\\t1", ["New York", "\\"]),
        ],
    )
    def test_keys_are_in_the_order_of_their_numbers(self, folder, text, keys):
        (folder / "word.dic").write_bytes(text.encode())
        options = read_any_options(folder / "config.json")
        assert options.dictionaries.n_words == len(keys)

    def test_its_folder_is_distinguished_from_the_public_format(self, folder):
        assert model_files(folder) == (folder / "config.json", folder / "encoder.pkl")
        (folder / "options.json").touch()
        assert model_files(folder) is None
        assert model_files(folder.parent) is None

    def test_a_pickle_with_code_is_refused_and_not_run(self, folder, tmp_path):
        class Code:
            def __reduce__(self):
                return Path.touch, (tmp_path / "was-run",)

        (folder / "encoder.pkl").write_bytes(pickle.dumps(Code()))
        with pytest.raises(ValueError, match=r"encoder\.pkl"):
            read(folder)
        torch.save({"a": Code()}, folder / "encoder.pkl")
        with pytest.raises(ValueError, match=r"encoder\.pkl"):
            read(folder)
        assert not (tmp_path / "was-run").exists()

    @pytest.mark.parametrize(
        ("name", "content", "named"),
        [
            ("encoder.pkl", b"not a pickle", r"encoder\.pkl"),
            ("encoder.pkl", None, r"encoder\.pkl"),
            ("char.dic", b"a\t0\nb\n", r"char\.dic, line 2"),
            ("config.json", b'{"model": 3}', r"config\.json"),
            ("cnn_small.json", b'{"token_embedder": {}}', r"cnn_small\.json"),
            ("config.json", b'{"config_path": "/models/other.json"}', r"config_path.*other\.json"),
            ("word.dic", b"a\t0\n<oov>\t1\n", r"word\.dic"),
        ],
    )
    def test_an_error_names_the_wrong_file(self, folder, name, content, named):
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        with pytest.raises((ValueError, FileNotFoundError), match=named):
            read(folder)

    @pytest.mark.parametrize("word", ["<bos>", "<eos>"])
    def test_boundaries_are_refused(self, bilm, word):
        with pytest.raises(ValueError, match=word):
            Elmo(bilm).embed([["a"], ["a", word]])
        indexer = ElmoTokenIndexer(unicode_characters=9)
        with pytest.raises(ValueError, match=word):
            indexer.tokens_to_indices([Token("a"), Token(word)], Vocabulary())

    def test_bytes_are_refused(self):
        options = BilmOptions(
            cell_dim=4,
            projection_dim=3,
            character_dim=0,
            filters=(),
            n_highway=0,
            dictionaries=DictionaryOptions(n_words=9, word_dim=3),
        )
        with pytest.raises(ValueError, match="unicode_characters"):
            Bilm(options)(BYTES.batch([["a"]]))
