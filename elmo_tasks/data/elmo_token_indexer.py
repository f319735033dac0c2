"""Words as character ids, for AllenNLP's fields."""

from functools import partial
from typing import Any, Optional

import numpy as np
import torch
from allennlp.data import Token, TokenIndexer, Vocabulary
from allennlp.data.token_indexers import TokenCharactersIndexer
from allennlp.data.token_indexers.token_indexer import IndexedTokenList

from elmo_tasks.bilm.characters import MAX_CHARACTERS_PER_TOKEN, rows_of, word_to_character_ids
from elmo_tasks.bilm.many_langs import BOUNDARIES, word_to_code_points

__all__ = ["ElmoTokenIndexer", "WordCharactersIndexer"]


@TokenIndexer.register("elmo")
class ElmoTokenIndexer(TokenIndexer):
    """
    Produces the same ids as AllenNLP's `elmo_characters`, but faster: the ids of a word are computed once,
    and all its occurrences share one array.

    # Parameters

    unicode_characters : `int`, optional
        For a biLM with its own dictionaries, such as ELMoForManyLangs: the `max_characters_per_token` of its
        options. The ids are then Unicode code points. `None`: bytes, for every other biLM.
    """

    def __init__(self, unicode_characters: Optional[int] = None, token_min_padding_length: int = 0) -> None:
        super().__init__(token_min_padding_length)
        self._width = unicode_characters or MAX_CHARACTERS_PER_TOKEN
        # The readers already refuse the boundaries of other biLMs.
        self._boundaries = BOUNDARIES if unicode_characters else ()
        self._row_of = partial(word_to_code_points, width=self._width) if unicode_characters else word_to_character_ids

    def count_vocab_items(self, token: Token, counter: dict[str, dict[str, int]]) -> None:
        """Does nothing: the ids do not depend on a vocabulary."""

    def get_empty_token_list(self) -> IndexedTokenList:
        return {"character_ids": []}

    def tokens_to_indices(self, tokens: list[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        words = [token.ensure_text() for token in tokens]
        return {"character_ids": rows_of(words, self._row_of, self._boundaries)}

    def as_padded_tensor_dict(
        self, tokens: IndexedTokenList, padding_lengths: dict[str, int]
    ) -> dict[str, torch.Tensor]:
        """`character_ids`, of shape `(timesteps, 50)` or `(timesteps, unicode_characters)`; zero in the padding."""
        rows = tokens["character_ids"]
        # Shape: (timesteps, width)
        padded = np.zeros((padding_lengths["character_ids"], self._width), dtype=np.int64)
        # One copy for the whole sentence, because NumPy would process the rows one by one.
        joined = np.frombuffer(b"".join(rows[: len(padded)]), dtype=np.int64)
        padded.reshape(-1)[: len(joined)] = joined
        return {"character_ids": torch.from_numpy(padded)}


@TokenIndexer.register("elmo_token_characters")
class WordCharactersIndexer(TokenCharactersIndexer):
    """Like AllenNLP's `characters`, but the ids of a word are computed once for all its occurrences."""

    def __init__(self, min_padding_length: int, **kwargs: Any) -> None:
        super().__init__(min_padding_length=min_padding_length, **kwargs)
        # One attribute, so a thread never sees the ids of a different vocabulary.
        self._ids: tuple[Vocabulary | None, dict[str | None, list[int]]] = None, {}

    def tokens_to_indices(self, tokens: list[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        owner, ids = self._ids
        # The cache is limited, because a predictor may read text of any length.
        if vocabulary is not owner or len(ids) > 200_000:
            ids = {}
            self._ids = vocabulary, ids
        for token in tokens:
            if token.text not in ids:
                (ids[token.text],) = super().tokens_to_indices([token], vocabulary)["token_characters"]
        return {"token_characters": [ids[token.text] for token in tokens]}

    def __getstate__(self) -> dict[str, Any]:
        """Omits the words and the vocabulary, which every deep copy of an instance would copy."""
        return {**self.__dict__, "_ids": (None, {})}
