"""Words as character ids, for AllenNLP's fields."""

import numpy as np
import torch
from allennlp.data.token_indexers import TokenIndexer
from allennlp.data.token_indexers.token_indexer import IndexedTokenList
from allennlp.data.tokenizers import Token
from allennlp.data.vocabulary import Vocabulary

from elmo_tasks.bilm.characters import MAX_CHARACTERS_PER_TOKEN, word_to_character_ids

__all__ = ["ElmoTokenIndexer"]


@TokenIndexer.register("elmo")
class ElmoTokenIndexer(TokenIndexer):
    """
    The same ids as those of AllenNLP's `elmo_characters`, but faster: the ids of a word are computed once, and are one
    array in memory for all its occurrences.

    Registered as a `TokenIndexer` with name "elmo".

    # Parameters

    token_min_padding_length : `int`
        See `TokenIndexer`.
    """

    def count_vocab_items(self, token: Token, counter: dict[str, dict[str, int]]) -> None:
        """Does nothing: the ids do not depend on a vocabulary."""

    def get_empty_token_list(self) -> IndexedTokenList:
        return {"character_ids": []}

    def tokens_to_indices(self, tokens: list[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        return {"character_ids": [word_to_character_ids(token.ensure_text()) for token in tokens]}

    def as_padded_tensor_dict(
        self, tokens: IndexedTokenList, padding_lengths: dict[str, int]
    ) -> dict[str, torch.Tensor]:
        """
        # Returns

        `Dict[str, torch.Tensor]`
            `character_ids`, of shape `(timesteps, 50)`, zero where there is no word.
        """
        rows = tokens["character_ids"]
        # Shape: (timesteps, 50)
        padded = np.zeros((padding_lengths["character_ids"], MAX_CHARACTERS_PER_TOKEN), dtype=np.int64)
        # One copy for the sentence: NumPy would look at each row in turn.
        joined = np.frombuffer(b"".join(rows[: len(padded)]), dtype=np.int64)
        padded.reshape(-1)[: len(joined)] = joined
        return {"character_ids": torch.from_numpy(padded)}
