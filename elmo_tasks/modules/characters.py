"""The token embedder of characters, over the distinct words of a batch, and its convolution, without padding."""

from collections.abc import Sequence
from typing import Optional

import torch
from allennlp.modules import Seq2VecEncoder, TokenEmbedder
from allennlp.modules.seq2vec_encoders import CnnEncoder
from allennlp.modules.token_embedders import Embedding, TokenCharactersEncoder
from allennlp.nn import Activation
from torch.nn.functional import linear, pad

from elmo_tasks.bilm.character_encoder import distinct_rows

__all__ = ["DistinctCharactersEncoder", "UnpaddedCnn"]


@TokenEmbedder.register("elmo_character_encoding")
class DistinctCharactersEncoder(TokenCharactersEncoder):
    """
    AllenNLP's `character_encoding`, with the same result and weights, computed once for each distinct word of a batch:
    frequent words repeat, and all padding counts as one word. Each place in the text has its own dropout mask.
    """

    def __init__(self, embedding: Embedding, encoder: Seq2VecEncoder, dropout: float = 0.0) -> None:
        super().__init__(embedding, encoder)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, token_characters: torch.Tensor) -> torch.Tensor:
        """From shape `(batch_size, timesteps, n_characters)`, 0 for padding, to `(batch_size, timesteps, dim)`."""
        places = token_characters.shape[:-1]
        # Shape: (n_distinct, n_characters) and (batch_size * timesteps,)
        words, positions = distinct_rows(token_characters.reshape(places.numel(), token_characters.size(-1)))
        # Shape: (n_distinct, dim)
        vectors = super().forward(words.unsqueeze(0)).squeeze(0)
        # The gradient of a word is the sum over its places. Shape: (batch_size, timesteps, dim)
        return self.dropout(vectors.index_select(0, positions).view(*places, vectors.size(-1)))


@Seq2VecEncoder.register("elmo_cnn")
class UnpaddedCnn(CnnEncoder):
    """
    AllenNLP's `cnn`, with the same result and weights, over the windows without padding only: a batch of words is as
    wide as its longest, so that most windows have padding, and cannot be the maximum. The windows of all words are the
    rows of one matrix product. A word that is shorter than a filter has zeros.

    # Parameters

    embedding_dim, num_filters, ngram_filter_sizes, conv_layer_activation, output_dim
        As in `CnnEncoder`.
    partial_windows : `bool`
        Whether all windows that start in a word count, with zeros behind its end, as in document-qa
        (`docqa/nn/embedder.py`); a short word then has features too. AllenNLP 2.10.1 has no such windows.
    """

    def __init__(
        self,
        embedding_dim: int,
        num_filters: int,
        ngram_filter_sizes: Sequence[int] = (2, 3, 4, 5),
        conv_layer_activation: Optional[Activation] = None,
        output_dim: Optional[int] = None,
        partial_windows: bool = False,
    ) -> None:
        super().__init__(embedding_dim, num_filters, tuple(ngram_filter_sizes), conv_layer_activation, output_dim)
        self._partial_windows = partial_windows

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """From shape `(batch_size, timesteps, dim)`, with a mask, to `(batch_size, output_dim)`."""
        convolutions = [module for name, module in self.named_children() if name.startswith("conv_layer_")]
        tokens = tokens * mask.unsqueeze(-1)
        if self._partial_windows:
            # For the windows of a word that has no padding of its own.
            tokens = pad(tokens, (0, 0, 0, max(convolution.kernel_size[0] for convolution in convolutions) - 1))
        # Shape: (batch_size * timesteps, dim)
        timesteps, rows = tokens.size(1), tokens.flatten(0, 1)
        # Words of one length are next to each other. Shape: (batch_size,), both
        lengths, order = mask.sum(1).sort()
        counts = torch.bincount(lengths).tolist()
        pooled = [self._pooled(rows, order * timesteps, lengths, counts, convolution) for convolution in convolutions]
        # Shape: (batch_size, n_convolutions * num_filters)
        output = torch.cat(pooled, -1).index_select(0, order.argsort())
        return output if self.projection_layer is None else self.projection_layer(output)

    def _pooled(
        self,
        rows: torch.Tensor,
        starts: torch.Tensor,
        lengths: torch.Tensor,
        counts: list[int],
        convolution: torch.nn.Conv1d,
    ) -> torch.Tensor:
        """
        The maxima of filters of one width, of shape `(batch_size, num_filters)`. `starts` and `lengths`, of shape
        `(batch_size,)`, are the first row of each word and the number of its rows, `counts` the words of each length.
        """
        width = convolution.kernel_size[0]
        # Of a word that has a window.
        shortest = 1 if self._partial_windows else width
        # Shape: (batch_size,)
        n_windows = (lengths - (shortest - 1)).clamp(min=0)
        # Shape: (total_windows,)
        first_rows = (starts - (n_windows.cumsum(0) - n_windows)).repeat_interleave(n_windows)
        first_rows += torch.arange(len(first_rows), device=rows.device)
        # Shape: (total_windows, width * dim)
        window_rows = first_rows.unsqueeze(1) + torch.arange(width, device=rows.device)
        windows = rows.index_select(0, window_rows.flatten()).view(len(first_rows), width * rows.size(1))
        # Shape: (num_filters, width * dim)
        weight = convolution.weight.transpose(1, 2).flatten(1)
        # Shape: (total_windows, num_filters)
        responses = self._activation(linear(windows, weight, convolution.bias))
        # Words of one length are a rectangle: without padding, there is nothing to be masked.
        shapes = [(count, length - shortest + 1) for length, count in enumerate(counts) if count and length >= shortest]
        rectangles = responses.split([count * n_each for count, n_each in shapes])
        maxima = [
            rectangle.view(count, n_each, -1).amax(1)
            for rectangle, (count, n_each) in zip(rectangles, shapes, strict=True)
        ]
        # Keeps the graph connected when every word is too short (zero gradients).
        too_short = responses.new_zeros(sum(counts[:shortest]), responses.size(1))
        return torch.cat([too_short, responses[:0], *maxima])
