"""Attention between a context and a question, both ways."""

import torch
from allennlp.modules.matrix_attention import LinearMatrixAttention
from allennlp.nn.util import min_value_of_dtype

__all__ = ["BidafAttention"]


class BidafAttention(torch.nn.Module):
    """
    The bidirectional attention of BiDAF (Seo et al. 2017), as Clark and Gardner (2017) have it. With the similarity
    `s_ij = w . [x_i; q_j; x_i * q_j] + b` of word `i` of the context and word `j` of the question:

        a_i = sum_j softmax_j(s_ij) q_j                context to question
        c   = sum_i softmax_i(max_j s_ij) x_i          question to context
        y_i = [x_i; a_i; x_i * a_i; x_i * c]

    # Parameters

    dim : `int`
        Units of a word of either text.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self._dim = dim
        self.similarity = LinearMatrixAttention(dim, dim, combination="x,y,x*y")

    def get_output_dim(self) -> int:
        """Four times the width of a word."""
        return 4 * self._dim

    def forward(
        self,
        context: torch.Tensor,
        context_mask: torch.Tensor,
        question: torch.Tensor,
        question_mask: torch.Tensor,
    ) -> torch.Tensor:
        """
        # Parameters

        context : `torch.Tensor`
            Shape `(batch_size, n_context, dim)`.
        context_mask : `torch.BoolTensor`
            Shape `(batch_size, n_context)`, with at least one word in each row.
        question : `torch.Tensor`
            Shape `(batch_size, n_question, dim)`.
        question_mask : `torch.BoolTensor`
            Shape `(batch_size, n_question)`, with at least one word in each row.

        # Returns

        `torch.Tensor`
            `y`, of shape `(batch_size, n_context, 4 * dim)`.
        """
        # Shape: (batch_size, n_context, n_question)
        scores = self.similarity(context, question)
        scores = scores.masked_fill(~question_mask[:, None], min_value_of_dtype(scores.dtype))
        # Shape: (batch_size, n_context, dim)
        attended = scores.softmax(-1) @ question
        # The highest score of each word of the context with any word of the question. Shape: (batch_size, n_context)
        highest = scores.max(-1).values.masked_fill(~context_mask, min_value_of_dtype(scores.dtype))
        # Shape: (batch_size, 1, dim)
        of_context = highest.softmax(-1)[:, None] @ context
        # Shape: (batch_size, n_context, 4 * dim)
        return torch.cat([context, attended, context * attended, context * of_context], -1)
