"""Tests of `ElmoEmbedder`, including the calls that public programs make."""

import pickle
import shutil

import numpy as np
import pytest
import torch

import elmo_tasks
from elmo_tasks import Elmo, ElmoEmbedder
from elmo_tasks.bilm import Bilm
from elmo_tasks.vectors import elmo_embedder as module
from tests.bilm.helpers import save
from tests.paths import TINY_BILM

SENTENCES = [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀"], ["The", "cat"]]
TEXT = "The cat sat .\nEncyclopædia 😀\n\nThe cat sat .\n"


@pytest.fixture(scope="module")
def old_files(bilm: Bilm, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return save(bilm, tmp_path_factory.mktemp("bilm"))


@pytest.fixture(scope="module")
def embedder(old_files: tuple[str, str]) -> ElmoEmbedder:
    return ElmoEmbedder(*old_files)


def layers_alone(bilm: Bilm, sentence: list[str]) -> np.ndarray:
    """Shape `(n_layers, n_words, dim)`."""
    return np.stack([layer[0].numpy() for layer in bilm([sentence]).layers])


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


class TestMethods:
    def test_each_returns_the_layers_of_the_sentences(self, embedder, bilm):
        batch, again = embedder.embed_batch(SENTENCES), embedder.embed_batch(SENTENCES)
        one_by_one = [embedder.embed_sentence(sentence) for sentence in SENTENCES]
        lazily = list(embedder.embed_sentences(iter(SENTENCES), batch_size=3))
        activations, mask = embedder.batch_to_embeddings(SENTENCES)
        assert (activations.shape, mask.dtype) == ((4, 3, 4, 12), torch.int64)
        assert mask.tolist() == [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]]
        assert not activations.requires_grad
        for row, sentence in enumerate(SENTENCES):
            expected = layers_alone(bilm, sentence)
            tensor = activations[row, :, : mask[row].sum()].numpy()
            for found in (batch[row], again[row], one_by_one[row], lazily[row], tensor):
                assert found.dtype == np.float32
                assert_close(found, expected)

    def test_sentences_are_read_batch_by_batch(self, embedder):
        read = []
        vectors = embedder.embed_sentences((read.append(words) or words for words in SENTENCES), batch_size=2)
        assert not read
        next(vectors)
        assert len(read) == 2

    def test_sentences_may_be_read_only_once(self, embedder):
        found, expected = embedder.embed_batch(iter(SENTENCES)), embedder.embed_batch(SENTENCES)
        assert len(found) == len(expected) == len(SENTENCES)
        assert all(np.array_equal(*arrays) for arrays in zip(found, expected, strict=True))
        assert embedder.batch_to_embeddings(iter(SENTENCES))[0].shape == (4, 3, 4, 12)

    def test_no_sentences_give_no_vectors(self, embedder):
        assert embedder.embed_batch([]) == []
        assert embedder.batch_to_embeddings([[]])[0].shape == (1, 3, 0, 12)


class TestPublicPrograms:
    """Reimplements the calls that public programs make; `bilm` is the oracle for all of them."""

    def test_protein_embedders_pass_letters(self, old_files, bilm):
        options_file, weight_file = old_files
        embedder = ElmoEmbedder(weight_file=weight_file, options_file=options_file, cuda_device=-1)
        sequences = ["MGSSHH", "KQ"]
        with torch.no_grad():
            batch = embedder.embed_batch([list(sequence) for sequence in sequences])
        for sequence, found in zip(sequences, batch, strict=True):
            expected = layers_alone(bilm, list(sequence))
            assert_close(embedder.embed_sentence(list(sequence)), expected)
            assert_close(found.sum(axis=0).mean(axis=0), expected.sum(0).mean(0))
            assert_close(torch.tensor(found).sum(dim=0).mean(dim=0).numpy(), expected.sum(0).mean(0))

    @pytest.mark.parametrize("mode", ["all", "top", "average"])
    def test_flair_takes_the_layers_of_each_token(self, old_files, bilm, mode):
        embedder = ElmoEmbedder(options_file=old_files[0], weight_file=old_files[1], cuda_device=-1)
        for _ in range(2):
            found = embedder.embed_batch(SENTENCES)[0]
            layers = [[torch.FloatTensor(found[layer, token, :]) for layer in range(3)] for token in range(4)]
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

    def test_taggers_take_batches_of_tensors(self, embedder, bilm):
        activations, mask = embedder.batch_to_embeddings(SENTENCES)
        is_padding = mask != 1
        summed = torch.sum(activations, dim=1)
        bytes_of_mask = mask.unsqueeze(2).repeat(1, 1, 12).byte().float()
        assert torch.equal(summed * bytes_of_mask, summed)
        for row, sentence in enumerate(SENTENCES):
            assert_close(summed[row, ~is_padding[row]].numpy(), layers_alone(bilm, sentence).sum(0))


class TestThePackage:
    def test_the_class_is_in_the_package(self):
        assert elmo_tasks.ElmoEmbedder is module.ElmoEmbedder
        assert "ElmoEmbedder" in dir(elmo_tasks)

    def test_the_default_is_the_authors_bilm(self, tmp_path, monkeypatch):
        assert module.DEFAULT_WEIGHT_FILE == (
            "https://s3-us-west-2.amazonaws.com/allennlp/models/elmo/2x4096_512_2048cnn_2xhighway/"
            "elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5"
        )
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path))
        shutil.copytree(TINY_BILM, tmp_path / "original")
        assert ElmoEmbedder().elmo_bilm.options == Elmo.from_pretrained(TINY_BILM).bilm.options


def test_a_string_is_not_a_list_of_words(embedder):
    with pytest.raises(ValueError, match="The cat"):
        embedder.embed_sentence("The cat")
