"""Words as character ids, for AllenNLP's fields."""

from typing import Optional

import numpy as np
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data.token_indexers import TokenIndexer
from allennlp.data.token_indexers.token_indexer import IndexedTokenList
from allennlp.data.tokenizers import Token
from allennlp.data.vocabulary import Vocabulary

from elmo_tasks.bilm.characters import MAX_CHARACTERS_PER_TOKEN, word_to_character_ids
from elmo_tasks.bilm.many_langs import word_to_code_points

__all__ = ["ElmoTokenIndexer"]


@TokenIndexer.register("elmo")
class ElmoTokenIndexer(TokenIndexer):
    """
    The same ids as those of AllenNLP's `elmo_characters`, but faster: the ids of a word are computed once, and are one
    array in memory for all its occurrences.

    Registered as a `TokenIndexer` with name "elmo".

    # Parameters

    unicode_characters : `int`, optional
        For a biLM with dictionaries of its own, as those of ELMoForManyLangs: the `max_characters_per_token` of its
        options. The ids are then those of Unicode code points. `None`: those of bytes, for every other biLM.
    token_min_padding_length : `int`
        See `TokenIndexer`.

    # Raises

    `ConfigurationError`
        If `unicode_characters` has no room for a character between the two marks of a word.
    """

    def __init__(self, unicode_characters: Optional[int] = None, token_min_padding_length: int = 0) -> None:
        super().__init__(token_min_padding_length)
        if unicode_characters is not None and unicode_characters < 3:
            raise ConfigurationError(
                "unicode_characters must be the max_characters_per_token of the biLM, at least 3, but is "
                f"{unicode_characters}"
            )
        self._unicode_characters = unicode_characters
        self._width = unicode_characters or MAX_CHARACTERS_PER_TOKEN

    def count_vocab_items(self, token: Token, counter: dict[str, dict[str, int]]) -> None:
        """Does nothing: the ids do not depend on a vocabulary."""

    def get_empty_token_list(self) -> IndexedTokenList:
        return {"character_ids": []}

    def tokens_to_indices(self, tokens: list[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        words = [token.ensure_text() for token in tokens]
        if self._unicode_characters is None:
            return {"character_ids": [word_to_character_ids(word) for word in words]}
        return {"character_ids": [word_to_code_points(word, self._width) for word in words]}

    def as_padded_tensor_dict(
        self, tokens: IndexedTokenList, padding_lengths: dict[str, int]
    ) -> dict[str, torch.Tensor]:
        """
        # Returns

        `Dict[str, torch.Tensor]`
            `character_ids`, of shape `(timesteps, 50)`, or with `unicode_characters` in place of the 50; zero where
            there is no word.
        """
        rows = tokens["character_ids"]
        # Shape: (timesteps, width)
        padded = np.zeros((padding_lengths["character_ids"], self._width), dtype=np.int64)
        # One copy for the sentence: NumPy would look at each row in turn.
        joined = np.frombuffer(b"".join(rows[: len(padded)]), dtype=np.int64)
        padded.reshape(-1)[: len(joined)] = joined
        return {"character_ids": torch.from_numpy(padded)}
