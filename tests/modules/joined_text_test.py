import pytest
import torch
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenCharactersIndexer

from elmo_tasks.data import ElmoTokenIndexer
from elmo_tasks.modules.joined_text import join

INDEXERS = {
    "tokens": SingleIdTokenIndexer(),
    "token_characters": TokenCharactersIndexer(min_padding_length=3),
    "elmo": ElmoTokenIndexer(),
}
SHORT = [["a", "cat"], ["x"]]
LONG = [["The", "Encyclopædia", "Britannica", "is", "long"], ["word"]]


def text(sentences: list[list[str]]) -> dict[str, dict[str, torch.Tensor]]:
    vocab = Vocabulary.from_instances(
        [Instance({"text": TextField([Token(word) for word in words], INDEXERS)}) for words in [*SHORT, *LONG]]
    )
    batch = Batch([Instance({"text": TextField([Token(word) for word in words], INDEXERS)}) for words in sentences])
    batch.index_instances(vocab)
    return batch.as_tensor_dict()["text"]


class TestJoin:
    @pytest.mark.parametrize(("one", "other"), [(SHORT, LONG), (LONG, SHORT), (LONG, LONG), (SHORT, LONG[1:])])
    def test_it_is_the_batch_of_all_sentences(self, one, other):
        """Oracle: AllenNLP's own padding of one batch of all of them; longer words in the one, longer texts too."""
        joined, expected = join(text(one), text(other)), text([*one, *other])
        assert {name: set(tensors) for name, tensors in joined.items()} == {
            name: set(tensors) for name, tensors in expected.items()
        }
        for indexer, tensors in expected.items():
            for name, tensor in tensors.items():
                assert torch.equal(joined[indexer][name], tensor)
                assert joined[indexer][name].dtype == tensor.dtype

    def test_masks_stay_masks(self):
        """Oracle: by hand: what pads a mask is false."""
        one, other = ({"bert": {"mask": torch.ones(1, n, dtype=torch.bool)}} for n in (1, 3))
        mask = join(one, other)["bert"]["mask"]
        assert mask.tolist() == [[True, False, False], [True, True, True]]

    def test_gradients_go_to_both(self):
        """Oracle: by hand: each number is taken once."""
        one, other = torch.ones(2, 3, requires_grad=True), torch.ones(1, 4, requires_grad=True)
        join({"x": {"y": one}}, {"x": {"y": other}})["x"]["y"].sum().backward()
        assert torch.equal(one.grad, torch.ones(2, 3))
        assert torch.equal(other.grad, torch.ones(1, 4))
