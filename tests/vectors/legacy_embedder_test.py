"""Tests of `ElmoEmbedder`, including the calls that public programs make."""

import pickle
import shutil

import numpy as np
import pytest
import torch

from elmo_tasks import Elmo, ElmoEmbedder
from elmo_tasks.bilm import Bilm
from elmo_tasks.vectors import legacy_embedder as module
from tests.bilm.helpers import layers_alone, save
from tests.paths import TINY_BILM
from tests.vectors.helpers import recorded

SENTENCES = [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀"], ["The", "cat"]]


@pytest.fixture(scope="module")
def old_files(bilm: Bilm, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return save(bilm, tmp_path_factory.mktemp("bilm"))


@pytest.fixture(scope="module")
def embedder(old_files: tuple[str, str]) -> ElmoEmbedder:
    return ElmoEmbedder(*old_files)


def assert_close(array: np.ndarray, expected: np.ndarray) -> None:
    assert array.shape == expected.shape
    np.testing.assert_allclose(array, expected, rtol=0, atol=1e-6)


class TestMethods:
    def test_each_returns_the_layers_of_the_sentences(self, embedder, bilm):
        expected = [layers_alone(bilm, sentence) for sentence in SENTENCES]
        for results in (
            embedder.embed_batch(SENTENCES),
            embedder.embed_batch(iter(SENTENCES)),
            [embedder.embed_sentence(sentence) for sentence in SENTENCES],
            list(embedder.embed_sentences(iter(SENTENCES), batch_size=3)),
        ):
            for array, layers in zip(results, expected, strict=True):
                assert array.dtype == np.float32
                assert_close(array, layers)

    def test_activations_have_zeros_where_there_is_no_word(self, embedder, bilm):
        activations, mask = embedder.batch_to_embeddings(iter(SENTENCES))
        assert activations.shape == (4, 3, 4, 12)
        assert activations.dtype == torch.float32
        assert not activations.requires_grad
        assert mask.dtype == torch.int64
        assert mask.tolist() == [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
        for layers, sentence in zip(activations.numpy(), SENTENCES, strict=True):
            n_words = len(sentence)
            assert_close(layers[:, :n_words], layers_alone(bilm, sentence))
            assert not layers[:, n_words:].any()

    def test_sentences_are_read_batch_by_batch(self, embedder):
        read = []
        vectors = embedder.embed_sentences(recorded(SENTENCES, read), batch_size=2)
        assert not read
        next(vectors)
        assert len(read) == 2

    def test_no_sentences_give_no_vectors(self, embedder):
        assert embedder.embed_batch([]) == []
        assert embedder.batch_to_embeddings([[]])[0].shape == (1, 3, 0, 12)


class TestPublicPrograms:
    """Reimplements the calls that public programs make; `bilm` is the oracle for all of them."""

    def test_protein_embedders_pass_letters(self, old_files, bilm):
        """As SeqVec and bio_embeddings: letters are words, and the layers are summed."""
        options_file, weight_file = old_files
        embedder = ElmoEmbedder(weight_file=weight_file, options_file=options_file, cuda_device=-1)
        sequences = [list("MGSSHH"), list("KQ")]
        for letters, array in zip(sequences, embedder.embed_batch(sequences), strict=True):
            expected = layers_alone(bilm, letters)
            assert_close(embedder.embed_sentence(letters), expected)
            assert_close(array, expected)
            of_residues = torch.tensor(array).sum(dim=0)
            assert of_residues.shape == (len(letters), 12)
            of_protein = of_residues.mean(dim=0).numpy()
            np.testing.assert_allclose(of_protein, expected.sum(0).mean(0), rtol=0, atol=5e-6)

    def test_flair_takes_the_layers_of_each_token(self, old_files, bilm):
        options_file, weight_file = old_files
        embedder = ElmoEmbedder(options_file=options_file, weight_file=weight_file, cuda_device=-1)
        expected = layers_alone(bilm, SENTENCES[0])
        for _ in range(2):
            embeddings = embedder.embed_batch(SENTENCES)[0]
            for token in range(4):
                layers = [torch.FloatTensor(embeddings[layer, token, :]) for layer in range(3)]
                expected_layers = expected[:, token]
                # The modes of flair: "all", "top" and "average".
                assert_close(torch.cat(layers, 0).numpy(), expected_layers.ravel())
                assert_close(layers[-1].numpy(), expected_layers[-1])
                assert_close(torch.mean(torch.stack(layers), 0).numpy(), expected_layers.mean(0))
            embedder = pickle.loads(pickle.dumps(embedder))
            embedder.cuda_device = -1
            embedder.elmo_bilm.to(device=torch.device("cpu"))
            lstm = embedder.elmo_bilm._elmo_lstm
            lstm._states = tuple(state.to("cpu") for state in lstm._states)


class TestThePackage:
    def test_the_default_is_the_authors_bilm(self, tmp_path, monkeypatch):
        assert module.DEFAULT_WEIGHT_FILE == (
            "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo/2x4096_512_2048cnn_2xhighway/"
            "elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5"
        )
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path))
        shutil.copytree(TINY_BILM, tmp_path / "original")
        assert ElmoEmbedder().elmo_bilm.options == Elmo.from_pretrained(TINY_BILM).bilm.options
