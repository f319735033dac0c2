"""Attention between the words of texts."""

from collections.abc import Callable

import torch
from allennlp.nn.util import masked_softmax

__all__ = ["attend_in_blocks", "softmax_over_words"]

# The number of pairs of words that are computed together.
MAX_PAIRS = 2**22


def attend_in_blocks(
    attend: Callable[[torch.Tensor, int], torch.Tensor], words: torch.Tensor
) -> torch.Tensor:
    """
    Computes `attend(words, 0)`, for words of shape `(batch_size, timesteps, dim)` that attend to as
    many words. Without gradients, a long text is computed in blocks: each call of `attend` gets
    some of the timesteps and the number of the first of them, so memory is linear in the length of
    the text. With gradients, blocks would save no memory, because the backward pass needs all
    weights of the attention.
    """
    batch_size, timesteps = words.shape[:2]
    size = max(1, MAX_PAIRS // max(1, batch_size * timesteps))
    if torch.is_grad_enabled() or size >= timesteps:
        return attend(words, 0)
    attended = []
    for start in range(0, timesteps, size):
        attended.append(attend(words[:, start : start + size], start))
    return torch.cat(attended, 1)


def softmax_over_words(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Over the last dimension of `(batch_size, n_rows, timesteps)`, with a mask of shape
    `(batch_size, timesteps)`.
    """
    # Without `memory_efficient`, AllenNLP gives padding the score 0, and much lower scores lose
    # their weights.
    return masked_softmax(scores, mask.unsqueeze(1), memory_efficient=True)
