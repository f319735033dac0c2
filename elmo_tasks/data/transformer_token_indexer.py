"""Words as the pieces of a transformer's tokenizer, for AllenNLP's fields."""

from typing import Any, Optional

import numpy as np
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data.token_indexers import TokenIndexer
from allennlp.data.token_indexers.token_indexer import IndexedTokenList
from allennlp.data.tokenizers import Token
from allennlp.data.vocabulary import Vocabulary

from elmo_tasks.transformer.checkpoint import read_pieces
from elmo_tasks.transformer.word_pieces import WordPieces

__all__ = ["TransformerTokenIndexer"]

_WIDTH = "pieces_per_word"


@TokenIndexer.register("elmo_transformer")
class TransformerTokenIndexer(TokenIndexer):
    """
    The pieces of each word, for a transformer where the biLM is. The pieces around a sentence and the windows of a long
    one are the model's: see `Transformer`.

    Registered as a `TokenIndexer` with name "elmo_transformer". AllenNLP's `pretrained_transformer_mismatched` gives
    the pieces of a sentence in one row with offsets, and shows them to the vocabulary; with one row a word, the layer
    cache and the joined texts of pairs work as for ELMo's characters.

    `allennlp train` writes the content of the tokenizer into the config of the run, for the archive.

    # Parameters

    model_name : `str`, optional
        The checkpoint with the tokenizer: see `PretrainedTransformer`. Required unless a `tokenizer` is there.
    tokenizer : `Dict[str, Any]`, optional
        The content of the tokenizer: see `WordPieces.to_dict`.
    token_min_padding_length : `int`
        See `TokenIndexer`.

    # Raises

    `ConfigurationError`
        If the tokenizer cannot be had, or has no offsets.
    """

    def __init__(
        self,
        model_name: Optional[str] = None,
        tokenizer: Optional[dict[str, Any]] = None,
        token_min_padding_length: int = 0,
    ) -> None:
        super().__init__(token_min_padding_length)
        if model_name is None and tokenizer is None:
            raise ConfigurationError(
                "a token indexer 'elmo_transformer' must have the 'model_name' of its transformer, but has none"
            )
        try:
            self._pieces = WordPieces.from_dict(tokenizer) if tokenizer is not None else read_pieces(str(model_name))[0]
        except ValueError as error:
            raise ConfigurationError(f"the token indexer 'elmo_transformer' cannot be made: {error}") from error

    @classmethod
    def from_params(cls, params: Params, **extras: Any) -> "TransformerTokenIndexer":
        """As of any class of AllenNLP, but without the tokenizer in the log, where it would be a line of 100 kB."""
        if isinstance(params, Params) and "tokenizer" in params:
            extras["tokenizer"] = params.params.pop("tokenizer")
        made: TransformerTokenIndexer = super().from_params(params, **extras)
        return made

    def count_vocab_items(self, token: Token, counter: dict[str, dict[str, int]]) -> None:
        """Does nothing: the pieces do not depend on a vocabulary."""

    def get_empty_token_list(self) -> IndexedTokenList:
        return {"pieces": []}

    def tokens_to_indices(self, tokens: list[Token], vocabulary: Vocabulary) -> IndexedTokenList:
        return {"pieces": self._pieces([token.ensure_text() for token in tokens])}

    def get_padding_lengths(self, indexed_tokens: IndexedTokenList) -> dict[str, int]:
        widest = max(map(len, indexed_tokens["pieces"]), default=0)
        return {**super().get_padding_lengths(indexed_tokens), _WIDTH: widest}

    def as_padded_tensor_dict(
        self, tokens: IndexedTokenList, padding_lengths: dict[str, int]
    ) -> dict[str, torch.Tensor]:
        """
        # Returns

        `Dict[str, torch.Tensor]`
            `pieces`, of shape `(timesteps, pieces_per_word)`: one more than the id of each piece, and zero where there
            is none.
        """
        # Shape: (timesteps, pieces_per_word)
        padded = np.zeros((padding_lengths["pieces"], padding_lengths[_WIDTH]), dtype=np.int64)
        for row, pieces in zip(padded, tokens["pieces"], strict=False):
            row[: len(pieces)] = np.add(pieces, 1)
        return {"pieces": torch.from_numpy(padded)}
