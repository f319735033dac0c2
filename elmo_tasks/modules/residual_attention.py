"""Residual self-attention of a text."""

import torch
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder
from allennlp.modules.matrix_attention import LinearMatrixAttention
from allennlp.nn.util import min_value_of_dtype

__all__ = ["ResidualAttention"]


class ResidualAttention(torch.nn.Module):
    """
    The residual self-attention of Clark and Gardner (2017). With the encoder's output `h` and the similarity
    `s_ij = w . [h_i; h_j; h_i * h_j] + b`, minus infinity where `i = j`:

        a_i = sum_j softmax_j(s_ij) h_j
        y_i = x_i + ReLU(W [h_i; a_i; h_i * a_i] + b)

    The paper's code, document-qa, adds a constant to the sum of that softmax, so that a word may attend to nothing;
    neither paper mentions it, and it is not here.

    # Parameters

    encoder : `Seq2SeqEncoder`
        From `x` to `h`; the paper has a biGRU.
    dropout : `float`
        Variational dropout of the input of the encoder and of the linear layer.
    """

    def __init__(self, encoder: Seq2SeqEncoder, dropout: float = 0.0) -> None:
        super().__init__()
        dim = encoder.get_output_dim()
        self.encoder = encoder
        self.similarity = LinearMatrixAttention(dim, dim, combination="x,y,x*y")
        self.projection = torch.nn.Linear(3 * dim, encoder.get_input_dim())
        self.dropout = InputVariationalDropout(dropout)

    def forward(self, text: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        text : `torch.Tensor`
            `x`, of shape `(batch_size, timesteps, dim)`.
        mask : `torch.BoolTensor`
            Shape `(batch_size, timesteps)`.

        # Returns

        `torch.Tensor`
            `y`, of the shape of `x`.
        """
        # Shape: (batch_size, timesteps, encoder_dim)
        hidden = self.encoder(self.dropout(text), mask)
        attended = self._attended(hidden, mask)
        # Shape: (batch_size, timesteps, 3 * encoder_dim)
        together = torch.cat([hidden, attended, hidden * attended], -1)
        # Shape: (batch_size, timesteps, dim)
        return text + self.projection(self.dropout(together)).relu()

    def _attended(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        Shape `(batch_size, timesteps, encoder_dim)`. In training, the backward pass keeps one tensor with a number
        for each pair of words, and its mask: with AllenNLP's `masked_softmax` it would keep four.
        """
        itself = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        # Shape: (batch_size, timesteps, timesteps)
        is_other = mask[:, None] & ~itself
        scores = self.similarity(hidden, hidden)
        scores = scores.masked_fill(~is_other, min_value_of_dtype(scores.dtype))
        attended = scores.softmax(-1) @ hidden
        # The only word of a text has no other word to attend to, and its softmax has no inputs.
        return attended * (mask.sum(-1) > 1)[:, None, None]
