import pickle
from copy import deepcopy

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import TokenCharactersIndexer, TokenIndexer
from allennlp.data.tokenizers import CharacterTokenizer
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elmo_tasks.data import WordCharactersIndexer, token_characters_indexer

SENTENCES = st.lists(st.lists(st.text("abA é😀", max_size=7), max_size=5), min_size=1, max_size=4)
OPTIONS = st.fixed_dictionaries(
    {"min_padding_length": st.integers(1, 4), "token_min_padding_length": st.integers(0, 7)},
    optional={
        "character_tokenizer": st.builds(
            CharacterTokenizer, byte_encoding=st.sampled_from([None, "utf-8"]), lowercase_characters=st.booleans()
        )
    },
)


def instances_of(sentences: list[list[str]], indexer: TokenIndexer) -> list[Instance]:
    return [Instance({"text": TextField([Token(word) for word in words], {"x": indexer})}) for words in sentences]


def tensor_of(sentences: list[list[str]], indexer: TokenIndexer, vocab: Vocabulary) -> torch.Tensor:
    batch = Batch(instances_of(sentences, indexer))
    batch.index_instances(vocab)
    return batch.as_tensor_dict()["text"]["x"]["token_characters"]


class TestWordCharactersIndexer:
    @settings(max_examples=60)
    @given(SENTENCES, OPTIONS)
    @example([["a", "b"], []], {"min_padding_length": 3})
    @example([[""]], {"min_padding_length": 1})
    def test_vocabulary_and_batch_are_those_of_allennlp(self, sentences, options):
        """Oracle: AllenNLP's `TokenCharactersIndexer`: numbers of all characters; value, shape and type of tensors."""
        vocabularies, tensors = [], []
        for indexer in (TokenCharactersIndexer(**options), WordCharactersIndexer(**options)):
            vocab = Vocabulary.from_instances(instances_of(sentences, indexer))
            vocabularies.append({name: vocab.get_token_to_index_vocabulary(name) for name in vocab._token_to_index})
            tensors.append([tensor_of(part, indexer, vocab) for part in (sentences, [["a", "unseen"]], sentences)])
        assert vocabularies[0] == vocabularies[1]
        for theirs, ours in zip(*tensors, strict=True):
            # It makes no second dimension of a sentence without words.
            if theirs.numel():
                assert torch.equal(theirs, ours) and theirs.dtype == ours.dtype
            else:
                assert not ours.numel()

    def test_the_ids_of_a_word_are_one_list(self):
        """Oracle: identity in memory."""
        indexed = WordCharactersIndexer(1).tokens_to_indices([Token("word"), Token("word")], Vocabulary())
        first, second = indexed["token_characters"]
        assert first is second

    def test_another_vocabulary_has_its_own_ids(self):
        """Oracle: AllenNLP's indexer; the third vocabulary is the second with more characters."""
        ours, theirs, second = WordCharactersIndexer(1), TokenCharactersIndexer(min_padding_length=1), Vocabulary()
        counts = {"token_characters": {"b": 2, "a": 1}}
        for vocab in (Vocabulary(counts), second, second):
            indexed = [indexer.tokens_to_indices([Token("ab")], vocab) for indexer in (ours, theirs)]
            assert indexed[0] == indexed[1]
            second.add_token_to_namespace("b", "token_characters")

    def test_text_without_end_takes_no_memory_without_end(self, monkeypatch):
        """Oracle: the number of words that are remembered, and the ids of AllenNLP."""
        monkeypatch.setattr(token_characters_indexer, "_MOST_WORDS", 10)
        ours, theirs = WordCharactersIndexer(1), TokenCharactersIndexer(min_padding_length=1)
        vocab = Vocabulary({"token_characters": {str(digit): 1 for digit in range(10)}})
        for number in range(100):
            token = Token(str(number))
            assert ours.tokens_to_indices([token], vocab) == theirs.tokens_to_indices([token], vocab)
            ours.count_vocab_items(token, {"token_characters": {str(digit): 0 for digit in range(10)}})
            assert max(len(ours._memo.ids), len(ours._memo.characters)) <= 10

    @pytest.mark.parametrize("copy", [deepcopy, lambda indexer: pickle.loads(pickle.dumps(indexer))])
    def test_a_copy_is_equal_and_starts_without_words(self, copy):
        """Oracle: `==` as of AllenNLP's indexers, which compares options; another option is not equal."""
        indexer = WordCharactersIndexer(1)
        indexer.tokens_to_indices([Token("word")], Vocabulary())
        copied = copy(indexer)
        assert copied == indexer and not copied._memo.ids
        assert copied != WordCharactersIndexer(2)
        assert copied.tokens_to_indices([Token("a")], Vocabulary()) == indexer.tokens_to_indices(
            [Token("a")], Vocabulary()
        )

    def test_it_is_made_from_a_config(self, environment):
        """Oracle: the name in AllenNLP's registry."""
        options = {"min_padding_length": 3, "character_tokenizer": {"byte_encoding": "utf-8"}}
        indexer = TokenIndexer.from_params(Params({"type": "elmo_token_characters", **options}))
        assert isinstance(indexer, WordCharactersIndexer)
        assert tensor_of([["a"]], indexer, Vocabulary()).tolist() == [[[ord("a") + 1, 0, 0]]]

    def test_a_token_without_text_is_an_error(self):
        """Oracle: AllenNLP's, which is of both kinds."""
        with pytest.raises(ConfigurationError):
            WordCharactersIndexer(1).tokens_to_indices([Token(text_id=3)], Vocabulary())
        with pytest.raises(ValueError):
            WordCharactersIndexer(1).count_vocab_items(Token(text_id=3), {})
