"""A convolution over characters that skips the padding."""

import torch
from allennlp.modules import Seq2VecEncoder
from allennlp.modules.seq2vec_encoders import CnnEncoder
from torch.nn.functional import linear

__all__ = ["UnpaddedCnn"]


@Seq2VecEncoder.register("elmo_cnn")
class UnpaddedCnn(CnnEncoder):
    """
    AllenNLP's `cnn`, with the same result, over the windows without padding only: a batch of words is as wide as its
    longest, so that most windows have padding, and cannot be the maximum. The windows of all words are the rows of one
    matrix product. A word that is shorter than a filter has zeros. Weights have the same names in both.

    Registered as a `Seq2VecEncoder` with name "elmo_cnn". Its parameters are those of `CnnEncoder`.
    """

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
        batch_size, timesteps, _ = tokens.shape
        if mask is None:
            mask = tokens.new_ones(batch_size, timesteps, dtype=torch.bool)
        # Shape: (batch_size * timesteps, dim)
        rows = (tokens * mask.unsqueeze(-1)).flatten(0, 1)
        # Words of one length are next to each other. Shape: (batch_size,), both
        lengths, order = mask.sum(1).sort()
        counts = torch.bincount(lengths).tolist()
        convolutions = [module for name, module in self.named_children() if name.startswith("conv_layer_")]
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
        # Shape: (batch_size,)
        n_windows = (lengths - (width - 1)).clamp(min=0)
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
        shapes = [(count, length - width + 1) for length, count in enumerate(counts) if count and length >= width]
        rectangles = responses.split([count * n_each for count, n_each in shapes])
        maxima = [
            rectangle.view(count, n_each, -1).amax(1)
            for rectangle, (count, n_each) in zip(rectangles, shapes, strict=True)
        ]
        # Without a word that is long enough the result still depends on the weights: their gradient is zero.
        too_short = responses.new_zeros(sum(counts[:width]), responses.size(1))
        return torch.cat([too_short, responses[:0], *maxima])
