from itertools import chain

import torch
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenCharactersIndexer

from elmo_tasks.data import ElmoTokenIndexer
from elmo_tasks.models.text_batches import concat_texts


class TestConcatTexts:
    INDEXERS = {  # noqa: RUF012
        "tokens": SingleIdTokenIndexer(),
        "token_characters": TokenCharactersIndexer(min_padding_length=5),
        "elmo": ElmoTokenIndexer(),
    }

    def tensors(self, *batches):
        """Each batch as a model receives it, with a common vocabulary."""
        batches_of_instances = []
        for texts in batches:
            batches_of_instances.append([self.instance(words) for words in texts])
        vocab = Vocabulary.from_instances(chain.from_iterable(batches_of_instances))
        for instances in batches_of_instances:
            batch = Batch(instances)
            batch.index_instances(vocab)
            yield batch.as_tensor_dict()["text"]

    def instance(self, words):
        tokens = [Token(word) for word in words]
        return Instance({"text": TextField(tokens, self.INDEXERS)})

    def test_it_equals_allennlps_batch_of_both(self):
        """Different padding, names or order would make the tensors differ."""
        long = [["Encyclopædia", "is", "a", "word"], ["x"]]
        short = [["Is", "it"], ["😀"], ["no", "extraordinarily"]]
        for above, below in ((long, short), (short, long)):
            one, other, both = self.tensors(above, below, above + below)
            joined = concat_texts(one, other)
            assert joined.keys() == both.keys()
            for indexer, expected_tensors in both.items():
                assert joined[indexer].keys() == expected_tensors.keys()
                for name, expected in expected_tensors.items():
                    assert joined[indexer][name].dtype == expected.dtype
                    assert torch.equal(joined[indexer][name], expected)
