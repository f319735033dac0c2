import pickle

import pytest
import torch

from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.data.data_loaders.unique_word_batch import UniqueWordBatch
from tests.devices import DEVICES

SENTENCES = ["the cat saw the dog", "Ça va", "<S> the", "x" * 60]
VOCABULARY = {"<S>": 0, "</S>": 1, "<UNK>": 2, "the": 3, "dog": 4, "va": 5}


class TestUniqueWordBatch:
    def test_characters_are_those_of_the_bilm(self):
        """Oracle: `sentences_to_character_ids`."""
        tensors = UniqueWordBatch.from_sentences(SENTENCES, VOCABULARY, 2).to_tensors(None)
        expected = sentences_to_character_ids([sentence.split() for sentence in SENTENCES])
        assert tensors["character_ids"].dtype == torch.long
        assert torch.equal(tensors["character_ids"], expected)

    def test_words_are_numbers_of_the_vocabulary(self):
        """Oracle: by hand."""
        word_ids = UniqueWordBatch.from_sentences(SENTENCES, VOCABULARY, 2).to_tensors(None)["word_ids"]
        assert word_ids.dtype == torch.long
        assert word_ids.tolist() == [[3, 2, 2, 3, 4], [2, 5, -1, -1, -1], [0, 3, -1, -1, -1], [2, -1, -1, -1, -1]]

    def test_it_is_small(self):
        """Oracle: the tensors of the same batch, 408 bytes a token."""
        batch = UniqueWordBatch.from_sentences(["a rose is a rose is a rose"] * 100, VOCABULARY, 2)
        tensors = batch.to_tensors(torch.device("cpu"))
        assert len(pickle.dumps(batch)) < sum(tensor.nbytes for tensor in tensors.values()) / 50

    @pytest.mark.parametrize("device", DEVICES)
    def test_the_device_of_the_model_unfolds_it(self, device):
        """Oracle: the tensors without a device, which are on the CPU."""
        batch = UniqueWordBatch.from_sentences(SENTENCES, VOCABULARY, 2)
        for name, tensor in batch.to_tensors(torch.device(device)).items():
            assert tensor.device.type == device
            assert torch.equal(tensor.cpu(), batch.to_tensors(None)[name])
