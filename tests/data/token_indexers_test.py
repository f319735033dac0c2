import pytest
import torch
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import (
    ELMoTokenCharactersIndexer,
    TokenCharactersIndexer,
    TokenIndexer,
)
from hypothesis import example, given
from hypothesis import strategies as st

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.options import DictionaryOptions
from elmo_tasks.data import ElmoTokenIndexer, WordCharactersIndexer

WORDS = st.one_of(
    st.text("abé.", min_size=1, max_size=5),
    # Without lone surrogates, which are not text; AllenNLP drops them too.
    st.text(min_size=1, max_size=20),
    st.text("é😀a", min_size=20, max_size=60),
    st.sampled_from(["<S>", "</S>"]),
)


def ids_of(sentences: list[list[str]], indexer: TokenIndexer, key: str) -> torch.Tensor:
    """The tensors of a batch, as a model receives them."""
    instances = []
    for words in sentences:
        text = TextField(list(map(Token, words)), {"x": indexer})
        instances.append(Instance({"text": text}))
    batch = Batch(instances)
    batch.index_instances(Vocabulary.from_instances(batch))
    return batch.as_tensor_dict()["text"]["x"][key]


class TestElmoTokenIndexer:
    @given(st.lists(st.lists(WORDS, max_size=5), min_size=1, max_size=4), st.integers(0, 7))
    @example([[]], 0)
    @example([["a", "b"], []], 0)
    @example([["a"]], 3)
    def test_a_batch_has_the_ids_of_allennlp(self, sentences, min_padding):
        indexer = ElmoTokenIndexer(token_min_padding_length=min_padding)
        ids = ids_of(sentences, indexer, "character_ids")
        allennlp_indexer = ELMoTokenCharactersIndexer(token_min_padding_length=min_padding)
        expected = ids_of(sentences, allennlp_indexer, "elmo_tokens")
        assert ids.dtype == expected.dtype
        if not expected.numel():
            # For a batch without words, AllenNLP omits the third dimension, which the biLM needs.
            assert ids.shape == (len(sentences), 0, 50)
        else:
            assert torch.equal(ids, expected)

    def test_an_error_names_an_empty_word(self):
        for indexer in (ElmoTokenIndexer(), ElmoTokenIndexer(unicode_characters=50)):
            with pytest.raises(ValueError, match="empty"):
                ids_of([["a", ""]], indexer, "character_ids")

    def test_unicode_characters_match_the_bilm(self, environment):
        from allennlp.common import Params

        dictionaries = DictionaryOptions(n_words=5, word_dim=3, max_characters=9)
        # With words but no characters.
        options = BilmOptions(dictionaries=dictionaries, character_dim=0, filters=(), n_highway=0)
        sentences = [["나는", "b", "😀" * 20], ["\ud800"]]
        indexer = TokenIndexer.from_params(Params({"type": "elmo", "unicode_characters": 9}))
        ids = ids_of(sentences, indexer, "character_ids")
        assert torch.equal(ids, Bilm(options).word_rows.batch(sentences))


class TestWordCharactersIndexer:
    @given(
        st.lists(
            st.lists(st.text("abé😀", max_size=9), min_size=1, max_size=5), min_size=1, max_size=4
        )
    )
    def test_a_batch_has_the_ids_of_allennlp(self, sentences):
        ids = ids_of(sentences, WordCharactersIndexer(min_padding_length=5), "token_characters")
        allennlp_indexer = TokenCharactersIndexer(min_padding_length=5)
        assert torch.equal(ids, ids_of(sentences, allennlp_indexer, "token_characters"))

    def test_a_different_vocabulary_has_its_own_ids(self):
        indexer = WordCharactersIndexer(min_padding_length=1)
        for characters in ("abc", "cba", "abc"):
            vocabulary = Vocabulary(tokens_to_add={"token_characters": list(characters)})
            (ids,) = indexer.tokens_to_indices([Token("abc")], vocabulary)["token_characters"]
            letters = [vocabulary.get_token_from_index(id, "token_characters") for id in ids]
            assert letters == ["a", "b", "c"]
