"""The most probable answer among the spans of a text."""

import torch

__all__ = ["best_span"]


def best_span(start: torch.Tensor, end: torch.Tensor, max_length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """
    The span with the largest sum of the log-probabilities of its bounds. AllenNLP's `get_best_span` compares
    all pairs of words, this function only those of spans that are short enough.

    # Parameters

    start, end : `torch.Tensor`
        Log-probabilities that the answer begins or ends at a word, of shape `(batch_size, timesteps)`; very low where
        there is no word.
    max_length : `int`
        The most words that a span has.

    # Returns

    `Tuple[torch.LongTensor, torch.Tensor]`
        The first and the last word, of shape `(batch_size, 2)`, and the log-probability of each, of shape
        `(batch_size,)`.
    """
    # No span ends after the last word.
    padded = torch.nn.functional.pad(end, (0, max_length - 1), value=-torch.inf)
    # The spans from each word, by their length minus 1. Shape: (batch_size, timesteps, max_length)
    scores = start[:, :, None] + padded.unfold(1, max_length, 1)
    # Shape: (batch_size,)
    score, index = scores.flatten(1).max(-1)
    first = index.div(max_length, rounding_mode="floor")
    return torch.stack([first, first + index % max_length], -1), score
