import pytest
import torch
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenCharactersIndexer

from elmo_tasks.data import ElmoTokenIndexer
from elmo_tasks.modules.paired_text import concat_texts

LONG = [["Encyclopædia", "is", "a", "word"], ["x"]]
SHORT = [["Is", "it"], ["😀"], ["no", "extraordinarily"]]
INDEXERS = {
    "tokens": SingleIdTokenIndexer(),
    "token_characters": TokenCharactersIndexer(min_padding_length=5),
    "elmo": ElmoTokenIndexer(),
}


def tensors(*batches: list[list[str]]) -> list[dict[str, dict[str, torch.Tensor]]]:
    """Each batch as a model gets it, all with one vocabulary."""
    instances = [
        [Instance({"text": TextField([Token(word) for word in words], INDEXERS)}) for words in batch]
        for batch in batches
    ]
    vocab = Vocabulary.from_instances([instance for batch in instances for instance in batch])
    found = []
    for batch in map(Batch, instances):
        batch.index_instances(vocab)
        found.append(batch.as_tensor_dict()["text"])
    return found


class TestJoin:
    @pytest.mark.parametrize(
        ("first", "second"),
        [(LONG, SHORT), (SHORT, LONG), (LONG, [["a"] * 4]), ([[]], LONG), ([[]], [[]])],
        ids=["longer first", "shorter first", "equal length", "empty first", "nothing"],
    )
    def test_it_equals_allennlps_batch_of_both(self, first, second):
        """Oracle: AllenNLP's `Batch` of all sentences; other padding, names or orders would not be equal."""
        one, other, both = tensors(first, second, first + second)
        joined = concat_texts(one, other)
        assert {name: set(parts) for name, parts in joined.items()} == {n: set(parts) for n, parts in both.items()}
        for indexer, parts in both.items():
            for name, expected in parts.items():
                assert joined[indexer][name].dtype == expected.dtype
                assert torch.equal(joined[indexer][name], expected)

    def test_the_rows_of_each_are_unchanged(self):
        """Oracle: random input tensors of three dimensions."""
        first, second = torch.randint(1, 9, (2, 3, 7)), torch.randint(1, 9, (4, 5, 6))
        joined = concat_texts({"a": {"b": first}}, {"a": {"b": second}})["a"]["b"]
        assert joined.shape == (6, 5, 7)
        assert torch.equal(joined[:2, :3, :7], first)
        assert torch.equal(joined[2:, :5, :6], second)
        assert joined.sum() == first.sum() + second.sum()

    def test_a_mask_stays_a_mask(self):
        """Oracle: by hand."""
        joined = concat_texts(
            {"a": {"mask": torch.ones(1, 1, dtype=torch.bool)}}, {"a": {"mask": torch.ones(1, 2) > 0}}
        )
        assert joined["a"]["mask"].tolist() == [[True, False], [True, True]]

    def test_other_indexers_are_an_error(self):
        """Oracle: the message names those of both."""
        tensor = {"ids": torch.ones(1, 1)}
        with pytest.raises(ValueError, match=r"but one has \['elmo'\] and the other \['elmo', 'tokens'\]"):
            concat_texts({"elmo": tensor}, {"elmo": tensor, "tokens": tensor})

    def test_gradients_reach_both(self):
        """Oracle: by hand: each number is used once."""
        one, other = torch.ones(2, 3, requires_grad=True), torch.ones(1, 4, requires_grad=True)
        concat_texts({"x": {"y": one}}, {"x": {"y": other}})["x"]["y"].sum().backward()
        assert torch.equal(one.grad, torch.ones(2, 3))
        assert torch.equal(other.grad, torch.ones(1, 4))
