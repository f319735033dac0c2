import logging
import pickle

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import ListField, TextField
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.data import TransformerTokenIndexer
from elmo_tasks.transformer.checkpoint import read_pieces

SENTENCES = [["The", "cat", "x" * 30], ["Hello"], []]


@pytest.fixture
def indexer(checkpoint):
    return TransformerTokenIndexer(str(checkpoint("bert")))


def tensor_of(indexer, sentences, nested=False):
    fields = [TextField([Token(word) for word in words], {"elmo": indexer}) for words in sentences]
    instances = [Instance({"text": ListField(fields)})] if nested else [Instance({"text": field}) for field in fields]
    batch = Batch(instances)
    batch.index_instances(Vocabulary())
    return batch.as_tensor_dict()["text"]


class TestTransformerTokenIndexer:
    @pytest.mark.parametrize("nested", [False, True])
    def test_a_batch_has_the_pieces_of_each_word(self, checkpoint, indexer, nested):
        """Oracle: the tokenizer, one added to each piece, and zeros; also for sentences in a list."""
        split = read_pieces(str(checkpoint("bert")))[0]
        text = tensor_of(indexer, SENTENCES, nested)
        tensor = text["elmo"]["pieces"]
        tensor = tensor[0] if nested else tensor
        width = max(len(pieces) for words in SENTENCES for pieces in split(words))
        assert tensor.shape == (3, 3, width)
        assert tensor.dtype == torch.long
        for row, words in zip(tensor.tolist(), SENTENCES, strict=True):
            expected = [[piece + 1 for piece in pieces] for pieces in split(words)]
            assert [[piece for piece in word if piece] for word in row] == expected + [[]] * (3 - len(words))
        mask = get_text_field_mask(text, num_wrapping_dims=int(nested))
        assert (mask[0] if nested else mask).sum(1).tolist() == [3, 1, 0]

    def test_texts_without_words_are_a_batch(self, indexer):
        """Oracle: the shape."""
        assert tensor_of(indexer, [[], []])["elmo"]["pieces"].shape == (2, 0, 0)

    def test_it_is_made_from_its_content_without_a_word_in_the_log(self, checkpoint, indexer, caplog):
        """Oracle: the tensor of the one made by name; the log has no tokenizer."""
        content = read_pieces(str(checkpoint("bert")))[0].to_dict()
        with caplog.at_level(logging.INFO):
            made = TokenIndexer.from_params(
                Params({"type": "elmo_transformer", "model_name": "gone", "tokenizer": content})
            )
        assert isinstance(made, TransformerTokenIndexer)
        assert content["packed"] not in caplog.text
        for again in (made, pickle.loads(pickle.dumps(made))):
            found = tensor_of(again, SENTENCES)["elmo"]["pieces"]
            assert torch.equal(found, tensor_of(indexer, SENTENCES)["elmo"]["pieces"])

    def test_a_text_is_padded_to_the_length_that_is_asked_for(self, checkpoint):
        """Oracle: the shape; the key of the base class."""
        indexer = TransformerTokenIndexer(str(checkpoint("bert")), token_min_padding_length=7)
        assert tensor_of(indexer, [["a"]])["elmo"]["pieces"].shape[:2] == (1, 7)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({}, "must have the 'model_name' of its transformer, but has none"),
            ({"model_name": "/no/such/folder"}, "'/no/such/folder' must have a tokenizer.json"),
            ({"tokenizer": {"packed": "?"}}, "a tokenizer must be what a training has written"),
        ],
    )
    def test_without_a_tokenizer_it_is_an_error(self, params, message):
        """Oracle: the message, in one line."""
        with pytest.raises(ConfigurationError, match=message) as error:
            TokenIndexer.from_params(Params({"type": "elmo_transformer", **params}))
        assert "\n" not in str(error.value)
