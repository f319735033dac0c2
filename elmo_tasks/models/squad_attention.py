"""The attention of the SQuAD model (Clark and Gardner 2017), and its most probable answer."""

import torch
from allennlp.modules import InputVariationalDropout, Seq2SeqEncoder
from allennlp.modules.matrix_attention import LinearMatrixAttention
from allennlp.nn.util import min_value_of_dtype

from elmo_tasks.modules.attention import in_blocks

__all__ = ["BidafAttention", "ResidualAttention", "best_span"]


class BidafAttention(torch.nn.Module):
    """
    The bidirectional attention of BiDAF (Seo et al. 2017), as in Clark and Gardner (2017). With the similarity
    `s_ij = w . [x_i; q_j; x_i * q_j] + b` between word `i` of the context and word `j` of the question:

        a_i = sum_j softmax_j(s_ij) q_j                context to question
        c   = sum_i softmax_i(max_j s_ij) x_i          question to context
        y_i = [x_i; a_i; x_i * a_i; x_i * c]
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.similarity = LinearMatrixAttention(dim, dim, combination="x,y,x*y")

    def forward(
        self, context: torch.Tensor, context_mask: torch.Tensor, question: torch.Tensor, question_mask: torch.Tensor
    ) -> torch.Tensor:
        """
        From shapes `(batch_size, n_context, dim)` and `(batch_size, n_question, dim)`, each with its mask and with at
        least one word in each row, to `(batch_size, n_context, 4 * dim)`.
        """
        # Shape: (batch_size, n_context, n_question)
        scores = _masked(self.similarity(context, question), question_mask[:, None])
        # Shape: (batch_size, n_context, dim)
        attended = scores.softmax(-1) @ question
        # The highest score of each word of the context with any word of the question. Shape: (batch_size, n_context)
        highest = _masked(scores.max(-1).values, context_mask)
        # Shape: (batch_size, 1, dim)
        of_context = highest.softmax(-1)[:, None] @ context
        return torch.cat([context, attended, context * attended, context * of_context], -1)


class ResidualAttention(torch.nn.Module):
    """
    The residual self-attention of Clark and Gardner (2017). With the encoder's output `h` and the similarity
    `s_ij = w . [h_i; h_j; h_i * h_j] + b`, minus infinity where `i = j`:

        a_i = sum_j softmax_j(s_ij) h_j
        y_i = x_i + ReLU(W [h_i; a_i; h_i * a_i] + b)

    The encoder, a biGRU in the paper, computes `h` from `x`. It and the linear layer have variational dropout on their
    inputs. document-qa adds a constant to the sum of the softmax, which is in neither paper and not used here.
    """

    def __init__(self, encoder: Seq2SeqEncoder, dropout: float) -> None:
        super().__init__()
        dim = encoder.get_output_dim()
        self.encoder = encoder
        self.similarity = LinearMatrixAttention(dim, dim, combination="x,y,x*y")
        self.projection = torch.nn.Linear(3 * dim, encoder.get_input_dim())
        self.dropout = InputVariationalDropout(dropout)

    def forward(self, text: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """From `x` to `y`, both of shape `(batch_size, timesteps, dim)`."""
        # Shape: (batch_size, timesteps, encoder_dim)
        hidden = self.encoder(self.dropout(text), mask)
        positions = torch.arange(mask.shape[1], device=mask.device)

        def attend(words: torch.Tensor, first: int) -> torch.Tensor:
            itself = positions[first : first + words.shape[1], None] == positions
            # Shape: (batch_size, n_words, timesteps)
            scores = _masked(self.similarity(words, hidden), mask[:, None] & ~itself)
            return scores.softmax(-1) @ hidden

        # A text of one word has no other word to attend to. Shape: (batch_size, timesteps, encoder_dim)
        attended = in_blocks(attend, hidden) * (mask.sum(-1) > 1)[:, None, None]
        # Shape: (batch_size, timesteps, 3 * encoder_dim)
        together = torch.cat([hidden, attended, hidden * attended], -1)
        return text + self.projection(self.dropout(together)).relu()


def best_span(start: torch.Tensor, end: torch.Tensor, max_length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The span of at most `max_length` words with the largest sum of the log-probabilities of its bounds.

    From the log-probabilities that the answer begins or ends at a word, of shape `(batch_size, timesteps)` and very low
    at padding, to the first and the last word, of shape `(batch_size, 2)`, and their log-probability.
    """
    # No span ends after the last word.
    padded = torch.nn.functional.pad(end, (0, max_length - 1), value=-torch.inf)
    # The spans that start at each word, by length minus 1. Shape: (batch_size, timesteps, max_length)
    scores = start[:, :, None] + padded.unfold(1, max_length, 1)
    # Shape: (batch_size,)
    score, index = scores.flatten(1).max(-1)
    first = index.div(max_length, rounding_mode="floor")
    return torch.stack([first, first + index % max_length], -1), score


def _masked(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return scores.masked_fill(~mask, min_value_of_dtype(scores.dtype))
