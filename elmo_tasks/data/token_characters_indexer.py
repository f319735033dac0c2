"""Words as the ids of characters whose vectors a model learns, for AllenNLP's fields."""

from itertools import chain
from typing import Optional

import numpy as np
import torch
from allennlp.data.token_indexers import TokenCharactersIndexer, TokenIndexer
from allennlp.data.token_indexers.token_indexer import IndexedTokenList
from allennlp.data.tokenizers import CharacterTokenizer, Token
from allennlp.data.vocabulary import Vocabulary

from elmo_tasks.data.memo import Memo

__all__ = ["WordCharactersIndexer"]

# The words of a data set are far fewer than this, but a predictor may read text without end.
_MOST_WORDS = 200_000


class _Memo(Memo):
    """The characters of words, and their ids in a vocabulary of so many characters."""

    def __init__(self) -> None:
        self.characters: dict[str | None, list[str]] = {}
        self.ids: dict[str | None, list[int]] = {}
        self.vocabulary: Vocabulary | None = None
        self.n_characters = 0


@TokenIndexer.register("elmo_token_characters")
class WordCharactersIndexer(TokenCharactersIndexer):
    """
    The same ids and counts as those of AllenNLP's `characters`, but faster: the characters of a word are looked up
    once, and are one list in memory for all its occurrences.

    Registered as a `TokenIndexer` with name "elmo_token_characters".

    # Parameters

    min_padding_length : `int`
        The least number of characters of a padded word: the width of the widest filter of a CNN.
    namespace : `str`
        That of the characters in the vocabulary.
    character_tokenizer : `CharacterTokenizer`, optional
        From a word to its characters; by default those of Unicode.
    token_min_padding_length : `int`
        See `TokenIndexer`.
    """

    def __init__(
        self,
        min_padding_length: int,
        namespace: str = "token_characters",
        character_tokenizer: Optional[CharacterTokenizer] = None,
        token_min_padding_length: int = 0,
    ) -> None:
        super().__init__(
            namespace=namespace,
            character_tokenizer=character_tokenizer or CharacterTokenizer(),
            min_padding_length=min_padding_length,
            token_min_padding_length=token_min_padding_length,
        )
        self._memo = _Memo()

    def count_vocab_items(self, token: Token, counter: dict[str, dict[str, int]]) -> None:
        known = self._memo.characters
        characters = known.get(token.text)
        if characters is None:
            if len(known) >= _MOST_WORDS:
                known.clear()
            # Characters with an id of their own, such as bytes, are not in a vocabulary.
            found = self._character_tokenizer.tokenize(token.ensure_text())
            characters = known[token.text] = [c.ensure_text() for c in found if c.text_id is None]
        if characters:
            counts = counter[self._namespace]
            for character in characters:
                counts[character] += 1

    def tokens_to_indices(self, tokens: list[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        memo = self._memo
        n_characters = vocabulary.get_vocab_size(self._namespace)
        if memo.vocabulary is not vocabulary or memo.n_characters != n_characters or len(memo.ids) >= _MOST_WORDS:
            memo.vocabulary, memo.n_characters, memo.ids = vocabulary, n_characters, {}
        known = memo.ids
        new = {token.text: token for token in tokens if token.text not in known}
        if new:
            rows = super().tokens_to_indices(list(new.values()), vocabulary)["token_characters"]
            known.update(zip(new, rows, strict=True))
        return {"token_characters": [known[token.text] for token in tokens]}

    def as_padded_tensor_dict(
        self, tokens: IndexedTokenList, padding_lengths: dict[str, int]
    ) -> dict[str, torch.Tensor]:
        """
        # Returns

        `Dict[str, torch.Tensor]`
            `token_characters`, of shape `(timesteps, characters)`, zero where there is none.
        """
        timesteps, width = padding_lengths["token_characters"], padding_lengths["num_token_characters"]
        rows = [row[:width] for row in tokens["token_characters"][:timesteps]]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        # Shape: (timesteps, width)
        padded = np.zeros((timesteps, width), dtype=np.int64)
        is_character = np.arange(width) < lengths[:, None]
        padded[: len(rows)][is_character] = np.fromiter(chain.from_iterable(rows), np.int64, count=int(lengths.sum()))
        return {"token_characters": torch.from_numpy(padded)}
