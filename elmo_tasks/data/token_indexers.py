"""Words as character ids, or as the pieces of a transformer, for AllenNLP's fields."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Optional

import numpy as np
import torch
from allennlp.common import cached_transformers
from allennlp.data import Token, TokenIndexer, Vocabulary
from allennlp.data.token_indexers import TokenCharactersIndexer
from allennlp.data.token_indexers.token_indexer import IndexedTokenList

from elmo_tasks.bilm.character_ids import MAX_CHARACTERS_PER_TOKEN, rows_of, word_to_character_ids
from elmo_tasks.bilm.many_langs import BOUNDARIES, word_to_code_points

__all__ = ["ElmoTokenIndexer", "TransformerIndexer", "WordCharactersIndexer"]


@TokenIndexer.register("elmo")
class ElmoTokenIndexer(TokenIndexer):
    """
    Produces the same ids as AllenNLP's `elmo_characters`, but faster: the ids of a word are
    computed once, and all its occurrences share one array.

    # Parameters

    unicode_characters : `int`, optional
        For a biLM with its own dictionaries, such as ELMoForManyLangs: the
        `max_characters_per_token` of its options. The ids are then Unicode code points. `None`:
        bytes, for every other biLM.
    """

    def __init__(
        self, unicode_characters: Optional[int] = None, token_min_padding_length: int = 0
    ) -> None:
        super().__init__(token_min_padding_length)
        self._width = unicode_characters or MAX_CHARACTERS_PER_TOKEN
        self._row_of: Callable[[str], np.ndarray] = word_to_character_ids
        # The readers already refuse the boundaries of other biLMs.
        self._boundaries: Sequence[str] = ()
        if unicode_characters:
            self._row_of = partial(word_to_code_points, width=self._width)
            self._boundaries = BOUNDARIES

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
        """
        `character_ids`, of shape `(timesteps, 50)` or `(timesteps, unicode_characters)`; zero in
        the padding.
        """
        rows = tokens["character_ids"]
        # Shape: (timesteps, width)
        padded = np.zeros((padding_lengths["character_ids"], self._width), dtype=np.int64)
        # One copy for the whole sentence, because NumPy would process the rows one by one.
        joined = np.frombuffer(b"".join(rows[: len(padded)]), dtype=np.int64)
        padded.reshape(-1)[: len(joined)] = joined
        return {"character_ids": torch.from_numpy(padded)}


@TokenIndexer.register("elmo_token_characters")
class WordCharactersIndexer(TokenCharactersIndexer):
    """
    Like AllenNLP's `characters`, but the ids of a word are computed once for all its occurrences.
    """

    def __init__(self, min_padding_length: int, **kwargs: Any) -> None:
        super().__init__(min_padding_length=min_padding_length, **kwargs)
        # One attribute, so a thread never sees the ids of a different vocabulary.
        self._ids: tuple[Vocabulary | None, dict[str | None, list[int]]] = (None, {})

    def tokens_to_indices(self, tokens: list[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        owner, ids = self._ids
        # The cache is limited, because a predictor may read text of any length.
        if vocabulary is not owner or len(ids) > 200_000:
            ids = {}
            self._ids = (vocabulary, ids)
        for token in tokens:
            if token.text not in ids:
                indexed = super().tokens_to_indices([token], vocabulary)
                ids[token.text] = indexed["token_characters"][0]
        return {"token_characters": [ids[token.text] for token in tokens]}

    def __getstate__(self) -> dict[str, Any]:
        """Omits the words and the vocabulary, which every deep copy of an instance would copy."""
        return {**self.__dict__, "_ids": (None, {})}


@TokenIndexer.register("elmo_transformer")
class TransformerIndexer(TokenIndexer):
    """
    Splits the words of a sentence into the pieces of a transformer, and the pieces into segments.
    It produces what the tokenizer gives to its model (`input_ids`, `attention_mask`, ...), padded
    with zeros, and `word_numbers`, the number of the word that a piece belongs to: from 1, and 0
    for special pieces. Each has shape `(n_segments, n_pieces)`. `mask`, of shape `(timesteps,)`, is
    true for each word.

    # Parameters

    model_name : `str`
        A folder with a checkpoint, or a name on the Hugging Face hub.
    max_length : `int`
        The largest number of pieces per segment, with the special ones.
    tokenizer_kwargs : `Dict[str, Any]`, optional
        Of `AutoTokenizer.from_pretrained`: RoBERTa's needs `{"add_prefix_space": true}` to split
        words.
    """

    def __init__(
        self,
        model_name: str,
        max_length: int = 512,
        tokenizer_kwargs: Optional[dict[str, Any]] = None,
    ) -> None:
        super().__init__()
        self._checkpoint = {"model_name": model_name, **(tokenizer_kwargs or {})}
        self._max_length = max_length

    def count_vocab_items(self, token: Token, counter: dict[str, dict[str, int]]) -> None:
        """Does nothing: the pieces do not depend on a vocabulary."""

    def get_empty_token_list(self) -> IndexedTokenList:
        return self.tokens_to_indices([], Vocabulary())

    def tokens_to_indices(self, tokens: list[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        # AllenNLP keeps the tokenizer, so that copies of an instance do not copy it.
        tokenizer = cached_transformers.get_tokenizer(**self._checkpoint)
        segments = tokenizer(
            [token.ensure_text() for token in tokens],
            is_split_into_words=True,
            truncation=True,
            max_length=self._max_length,
            return_overflowing_tokens=True,
        )
        word_numbers = []
        for segment in range(len(segments["input_ids"])):
            words_of_pieces = segments.word_ids(segment)
            word_numbers.append([0 if word is None else word + 1 for word in words_of_pieces])
        inputs = {name: segments[name] for name in tokenizer.model_input_names if name in segments}
        return {**inputs, "word_numbers": word_numbers, "mask": [True] * len(tokens)}

    def get_padding_lengths(self, indexed_tokens: IndexedTokenList) -> dict[str, int]:
        segments = indexed_tokens["input_ids"]
        return {
            "segments": len(segments),
            "pieces": max(map(len, segments)),
            "words": len(indexed_tokens["mask"]),
        }

    def as_padded_tensor_dict(
        self, tokens: IndexedTokenList, padding_lengths: dict[str, int]
    ) -> dict[str, torch.Tensor]:
        shape = (padding_lengths["segments"], padding_lengths["pieces"])
        tensors = {}
        for name, segments in tokens.items():
            if name == "mask":
                continue
            padded = torch.zeros(shape, dtype=torch.long)
            for row, segment in zip(padded, segments, strict=False):
                row[: len(segment)] = torch.tensor(segment)
            tensors[name] = padded
        tensors["mask"] = torch.arange(padding_lengths["words"]) < len(tokens["mask"])
        return tensors
