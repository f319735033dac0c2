"""The token embedder of characters, over the distinct words of a batch."""

import torch
from allennlp.modules import Seq2VecEncoder, TokenEmbedder
from allennlp.modules.token_embedders import Embedding, TokenCharactersEncoder

from elmo_tasks.bilm.character_encoder import distinct_rows

__all__ = ["DistinctCharactersEncoder"]


@TokenEmbedder.register("elmo_character_encoding")
class DistinctCharactersEncoder(TokenCharactersEncoder):
    """
    AllenNLP's `character_encoding`, with the same result, computed once for each distinct word of a batch. A text has
    its frequent words many times, and all padding is one more word. Weights have the same names in both.

    Registered as a `TokenEmbedder` with name "elmo_character_encoding".

    # Parameters

    embedding : `Embedding`
        Of the characters.
    encoder : `Seq2VecEncoder`
        From the characters of a word to its vector. If it has dropout itself, equal words have the same mask.
    dropout : `float`
        Of the vectors. Each place in the text has its own mask, also if its word occurs elsewhere.
    """

    def __init__(self, embedding: Embedding, encoder: Seq2VecEncoder, dropout: float = 0.0) -> None:
        super().__init__(embedding, encoder)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, token_characters: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        token_characters : `torch.LongTensor`
            Shape `(batch_size, timesteps, n_characters)`; 0 is padding.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, timesteps, dim)`.
        """
        places = token_characters.shape[:-1]
        if not token_characters.numel():
            # Not all encoders take a batch without words.
            return next(self.parameters()).new_zeros(*places, self.get_output_dim())
        # Shape: (n_distinct, n_characters) and (batch_size * timesteps,)
        words, positions = distinct_rows(token_characters.reshape(places.numel(), token_characters.size(-1)))
        # Shape: (n_distinct, dim)
        vectors = super().forward(words.unsqueeze(0)).squeeze(0)
        # The gradient of a word is the sum over its places. Shape: (batch_size, timesteps, dim)
        return self.dropout(vectors.index_select(0, positions).view(*places, vectors.size(-1)))
