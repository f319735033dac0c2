"""Negative samples for a sampled softmax, from the log-uniform distribution."""

from dataclasses import dataclass

import torch

__all__ = ["Negatives", "draw_negatives"]


@dataclass(frozen=True)
class Negatives:
    """
    Different words, drawn one after the other from the log-uniform distribution over the ranks by frequency,

        P(k) = log((k + 2) / (k + 1)) / log(n_words + 1),

    where words that were drawn before are skipped, as in TensorFlow's `log_uniform_candidate_sampler`.

    # Parameters

    words
        Shape `(n_samples,)`, int64, without duplicates.
    horizon
        Shape `()`: when the drawing stopped, see `draw_negatives`.
    """

    words: torch.Tensor
    horizon: torch.Tensor

    def log_expected_counts(self, words: torch.Tensor) -> torch.Tensor:
        """
        The logarithm of how often each of some words is among the negatives, on average, of the shape of `words`: with
        the rate `r` of a word, `log(1 - exp(-r * horizon))`.

        Weighted by the inverse of this count, the words drawn stand for all: the sum of `f(k) / count(k)` over them is,
        on average, the sum of `f(k)` over the vocabulary, exactly and for every `f` (Duffield et al. 2007; Kool et al.
        2019). TensorFlow's count, `1 - (1 - P(k)) ** n_tries`, is the same with tries instead of time, and has this
        property only nearly.
        """
        return torch.log(-torch.expm1(-_rates(words) * self.horizon))


def draw_negatives(n_words: int, n_samples: int, device: torch.device) -> Negatives:
    """
    Draws `n_samples` negatives, fewer than `n_words`, with torch's random numbers for the device, without waiting for
    the device.

    Every word gets an exponential waiting time, of a rate proportional to `P(k)`. They come in the order of
    successive draws without replacement, and no draw is in vain. The horizon is the time of the first word
    that is too late.
    """
    # Shape: (n_words,)
    times = torch.empty(n_words, device=device).exponential_() / _rates(torch.arange(n_words, device=device))
    # Shape: (n_samples + 1,), each
    first_times, words = times.topk(n_samples + 1, largest=False)
    return Negatives(words[:-1], first_times[-1])


def _rates(words: torch.Tensor) -> torch.Tensor:
    """P(k) without its denominator, which would only change the unit of time."""
    return torch.log1p(1.0 / (words + 1.0))
