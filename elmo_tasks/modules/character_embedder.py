"""
A token embedder of characters that computes each distinct word once, and a convolution that skips
padding.
"""

from typing import Any

import torch
from allennlp.modules import Seq2VecEncoder, TokenEmbedder
from allennlp.modules.seq2vec_encoders import CnnEncoder
from allennlp.modules.token_embedders import Embedding, TokenCharactersEncoder
from torch.nn.functional import linear, pad

from elmo_tasks.bilm.character_encoder import distinct_rows

__all__ = ["DistinctCharactersEncoder", "UnpaddedCnn"]


@TokenEmbedder.register("elmo_character_encoding")
class DistinctCharactersEncoder(TokenCharactersEncoder):
    """
    AllenNLP's `character_encoding`, with the same result and weights, computed once per distinct
    word of a batch: frequent words repeat, and all padding counts as one word. Each position in the
    text has its own dropout mask.
    """

    def __init__(self, embedding: Embedding, encoder: Seq2VecEncoder, dropout: float = 0.0) -> None:
        super().__init__(embedding, encoder)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, token_characters: torch.Tensor) -> torch.Tensor:
        """
        From shape `(batch_size, timesteps, n_characters)`, 0 for padding, to
        `(batch_size, timesteps, dim)`.
        """
        shape = token_characters.shape[:-1]
        # Shape: (batch_size * timesteps, n_characters)
        words = token_characters.reshape(shape.numel(), token_characters.size(-1))
        # Shape: (n_distinct, n_characters) and (batch_size * timesteps,)
        distinct_words, positions = distinct_rows(words)
        # Shape: (n_distinct, dim)
        distinct_vectors = super().forward(distinct_words.unsqueeze(0)).squeeze(0)
        # Shape: (batch_size * timesteps, dim)
        vectors = distinct_vectors.index_select(0, positions)
        return self.dropout(vectors.unflatten(0, shape))


@Seq2VecEncoder.register("elmo_cnn")
class UnpaddedCnn(CnnEncoder):
    """
    AllenNLP's `cnn`, with the same result and weights, computed only over windows without padding:
    other windows cannot be the maximum. A filter's output is zero for words that are shorter than
    the filter.

    # Parameters

    partial_windows : `bool`
        Whether all windows that start in a word count, with zeros after its end, as in document-qa.
    """

    def __init__(
        self, embedding_dim: int, num_filters: int, *, partial_windows: bool = False, **kwargs: Any
    ) -> None:
        # `kwargs` has the other parameters of `CnnEncoder`, from the config.
        super().__init__(embedding_dim, num_filters, **kwargs)
        self._partial_windows = partial_windows

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """From shape `(batch_size, timesteps, dim)`, with a mask, to `(batch_size, output_dim)`."""
        convolutions = []
        for name, module in self.named_children():
            if name.startswith("conv_layer_"):
                convolutions.append(module)
        tokens = tokens * mask.unsqueeze(-1)
        if self._partial_windows:
            widest = max(convolution.kernel_size[0] for convolution in convolutions)
            tokens = pad(tokens, (0, 0, 0, widest - 1))
        lengths = mask.sum(1)
        maxima = [self._pooled(tokens, lengths, convolution) for convolution in convolutions]
        # Shape: (batch_size, n_convolutions * num_filters)
        output = torch.cat(maxima, -1)
        if self.projection_layer is not None:
            output = self.projection_layer(output)
        return output

    def _pooled(
        self, tokens: torch.Tensor, lengths: torch.Tensor, convolution: torch.nn.Conv1d
    ) -> torch.Tensor:
        """
        The maximum of each filter of one width: shape `(batch_size, num_filters)`, for words of
        these `lengths`.
        """
        _, timesteps, dim = tokens.shape
        width = convolution.kernel_size[0]
        # Shape: (batch_size,)
        n_windows = lengths
        if not self._partial_windows:
            n_windows = (lengths - (width - 1)).clamp(min=0)
        # Shape: (batch_size, timesteps)
        is_window = torch.arange(timesteps, device=tokens.device) < n_windows.unsqueeze(1)
        # The first character of each window. Shape: (total_windows,)
        starts = is_window.flatten().nonzero().squeeze(1)
        # The characters of each window. Shape: (total_windows, width)
        characters = starts.unsqueeze(1) + torch.arange(width, device=tokens.device)
        # Shape: (total_windows * width, dim)
        vectors = tokens.flatten(0, 1).index_select(0, characters.flatten())
        # Shape: (total_windows, width * dim)
        windows = vectors.view(-1, width * dim)
        # Shape: (num_filters, width * dim)
        weight = convolution.weight.transpose(1, 2).flatten(1)
        # Shape: (total_windows, num_filters)
        responses = self._activation(linear(windows, weight, convolution.bias))
        # The word of each window. Shape: (total_windows, 1)
        word_numbers = starts.div(timesteps, rounding_mode="floor").unsqueeze(1)
        # `torch.segment_reduce` has wrong gradients where windows are equal. Shape: (batch_size,
        # num_filters)
        maxima = responses.new_zeros(len(tokens), responses.size(1))
        return maxima.scatter_reduce(
            0, word_numbers.expand_as(responses), responses, "amax", include_self=False
        )
