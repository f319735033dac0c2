import pickle

import pytest
import torch

from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.data.data_loaders.unique_word_batch import UniqueWordBatch

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

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
    def test_a_gpu_unfolds_it(self):
        """Oracle: the same on the CPU."""
        batch = UniqueWordBatch.from_sentences(SENTENCES, VOCABULARY, 2)
        device = torch.device("cuda", 0)
        for name, tensor in batch.to_tensors(device).items():
            assert tensor.device == device
            assert torch.equal(tensor.cpu(), batch.to_tensors(None)[name])
