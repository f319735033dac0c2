"""A convolution over characters that skips the padding."""

from collections.abc import Sequence
from typing import Optional

import torch
from allennlp.modules import Seq2VecEncoder
from allennlp.modules.seq2vec_encoders import CnnEncoder
from allennlp.nn import Activation
from torch.nn.functional import linear, pad

__all__ = ["UnpaddedCnn"]


@Seq2VecEncoder.register("elmo_cnn")
class UnpaddedCnn(CnnEncoder):
    """
    AllenNLP's `cnn`, with the same result, over the windows without padding only: a batch of words is as wide as its
    longest, so that most windows have padding, and cannot be the maximum. The windows of all words are the rows of one
    matrix product. A word that is shorter than a filter has zeros. Weights have the same names in both.

    Registered as a `Seq2VecEncoder` with name "elmo_cnn".

    # Parameters

    embedding_dim, num_filters, ngram_filter_sizes, conv_layer_activation, output_dim
        As those of `CnnEncoder`.
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

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """
        # Parameters

        tokens : `torch.Tensor`
            Shape `(batch_size, timesteps, dim)`.
        mask : `torch.BoolTensor`, optional
            Shape `(batch_size, timesteps)`.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, output_dim)`.
        """
        convolutions = [module for name, module in self.named_children() if name.startswith("conv_layer_")]
        if mask is None:
            mask = tokens.new_ones(tokens.shape[:2], dtype=torch.bool)
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
        The maxima of filters of one width, of shape `(batch_size, num_filters)`.

        `starts` and `lengths`, of shape `(batch_size,)`: the first row of each word, and the number of its rows;
        `counts`: the number of words of each length, from 0 on.
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
        # Without a word that is long enough the result still depends on the weights: their gradient is zero.
        too_short = responses.new_zeros(sum(counts[:shortest]), responses.size(1))
        return torch.cat([too_short, responses[:0], *maxima])
