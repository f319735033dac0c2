import pytest
import torch

from elmo_tasks.bilm import BilmOutput, LayerCache
from elmo_tasks.transformer.cached_transformer import CachedTransformer

SENTENCES = [["The", "cat", "sat", "."], ["Hello"], [], ["Encyclopædia", "😀", "cat"]]


@pytest.fixture
def cache(tmp_path):
    return LayerCache(tmp_path / "cache")


def count_passes(transformer):
    seen = []
    transformer.register_forward_pre_hook(lambda module, args: seen.append(args[0].clone()))
    return seen


def assert_same(one: BilmOutput, other: BilmOutput):
    assert torch.equal(one.mask, other.mask)
    for ours, theirs in zip(one.layers, other.layers, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


class TestCachedTransformer:
    def test_what_is_there_is_not_computed_again(self, make_transformer, pieces_of, cache):
        """Oracle: the transformer alone, and the batches that it sees: the second time the new sentence."""
        transformer = make_transformer("bert")
        cached = CachedTransformer(transformer, cache)
        first = pieces_of("bert", SENTENCES)
        assert_same(cached(first), transformer(first))
        # Another order, and wider padding: the last word has many pieces.
        again = pieces_of("bert", [SENTENCES[3], SENTENCES[0], ["new", "x" * 30]])
        expected = transformer(again)
        seen = count_passes(transformer)
        assert_same(cached(again), expected)
        assert len(seen) == 1
        assert torch.equal(seen[0], again[2:])
        seen.clear()
        assert_same(cached(again), expected)
        assert not seen

    @pytest.mark.parametrize(
        "change",
        [
            lambda made: made("bert", pooling="first"),
            lambda made: made("bert", max_pieces=20),
            lambda made: made("bert", overlap=3),
            lambda made: made("electra"),
        ],
    )
    def test_another_transformer_has_other_keys(self, make_transformer, pieces_of, cache, change):
        """Oracle: the number of passes over the same pieces."""
        pieces = pieces_of("bert", SENTENCES)
        CachedTransformer(make_transformer("bert"), cache)(pieces)
        other = change(make_transformer)
        seen = count_passes(other)
        assert_same(CachedTransformer(other, cache)(pieces), other(pieces))
        assert len(seen) == 2

    def test_changed_weights_have_other_keys(self, make_transformer, pieces_of, cache):
        """Oracle: the transformer with the changed weights alone."""
        transformer, pieces = make_transformer("bert"), pieces_of("bert", SENTENCES)
        cached = CachedTransformer(transformer, cache)
        before = cached(pieces)
        with torch.no_grad():
            transformer.network.embeddings.word_embeddings.weight.mul_(0.5)
        assert_same(cached(pieces), transformer(pieces))
        assert not torch.equal(before.layers[0], cached(pieces).layers[0])

    def test_other_types_are_computed(self, make_transformer, pieces_of, cache):
        """Oracle: the type of the layers; the passes."""
        transformer, pieces = make_transformer("bert").double(), pieces_of("bert", SENTENCES)
        seen = count_passes(transformer)
        for _ in range(2):
            assert CachedTransformer(transformer, cache)(pieces).layers[0].dtype is torch.float64
        assert len(seen) == 2
