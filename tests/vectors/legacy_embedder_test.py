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

SENTENCES = [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀"], ["The", "cat"]]


@pytest.fixture(scope="module")
def old_files(bilm: Bilm, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return save(bilm, tmp_path_factory.mktemp("bilm"))


@pytest.fixture(scope="module")
def embedder(old_files: tuple[str, str]) -> ElmoEmbedder:
    return ElmoEmbedder(*old_files)


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


class TestMethods:
    def test_each_returns_the_layers_of_the_sentences(self, embedder, bilm):
        batch, again = embedder.embed_batch(SENTENCES), embedder.embed_batch(iter(SENTENCES))
        one_by_one = [embedder.embed_sentence(sentence) for sentence in SENTENCES]
        lazily = list(embedder.embed_sentences(iter(SENTENCES), batch_size=3))
        activations, mask = embedder.batch_to_embeddings(iter(SENTENCES))
        assert (activations.shape, mask.dtype) == ((4, 3, 4, 12), torch.int64)
        assert mask.tolist() == [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
        assert not activations.requires_grad
        for row, sentence in enumerate(SENTENCES):
            expected = layers_alone(bilm, sentence)
            tensor, padding = (
                part.numpy() for part in activations[row].tensor_split([len(sentence)], 1)
            )
            assert not padding.any()
            for found in (batch[row], again[row], one_by_one[row], lazily[row], tensor):
                assert found.dtype == np.float32
                assert_close(found, expected)

    def test_sentences_are_read_batch_by_batch(self, embedder):
        read = []
        vectors = embedder.embed_sentences(
            (read.append(words) or words for words in SENTENCES), batch_size=2
        )
        assert not read
        next(vectors)
        assert len(read) == 2

    def test_no_sentences_give_no_vectors(self, embedder):
        assert embedder.embed_batch([]) == []
        assert embedder.batch_to_embeddings([[]])[0].shape == (1, 3, 0, 12)


class TestPublicPrograms:
    """Reimplements the calls that public programs make; `bilm` is the oracle for all of them."""

    @pytest.mark.parametrize("mode", ["all", "top", "average"])
    def test_flair_takes_the_layers_of_each_token(self, old_files, bilm, mode):
        embedder = ElmoEmbedder(options_file=old_files[0], weight_file=old_files[1], cuda_device=-1)
        for _ in range(2):
            found = embedder.embed_batch(SENTENCES)[0]
            layers = [
                [torch.FloatTensor(found[layer, token, :]) for layer in range(3)]
                for token in range(4)
            ]
            expected = layers_alone(bilm, SENTENCES[0])
            of_mode = {
                "all": (lambda x: torch.cat(x, 0), np.concatenate(expected, 1)),
                "top": (lambda x: x[-1], expected[-1]),
                "average": (lambda x: torch.mean(torch.stack(x), 0), expected.mean(0)),
            }
            combine, by_hand = of_mode[mode]
            assert_close(np.stack([combine(of_token).numpy() for of_token in layers]), by_hand)
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
