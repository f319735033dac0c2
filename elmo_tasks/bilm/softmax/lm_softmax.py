"""
The output layer of a biLM in training, which computes the likelihood of words from the biLM's
vectors.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy, embedding, linear

from elmo_tasks.bilm.packed_linear import PackedLinear

__all__ = ["LmSoftmax", "Negatives", "draw_negatives"]

# Logits in memory at the same time: 256 MB of float32, which is 372 rows for a vocabulary of
# 180,000 words.
LOGITS_AT_ONCE = 2**26
# Rows of a block of logits in training: on a CPU, more would leave the cache between the operations
# on them.
_ROWS_AT_ONCE = {"cpu": 128}
# Rows per thread and words in a block of logits on a CPU: 1 MB of float32, which fits in the cache.
_ROWS_IN_CACHE, _WORDS_IN_CACHE = 256, 1024


class LmSoftmax(nn.Module):
    """
    The softmax over the vocabulary that both directions of a biLM share (section 3.1 of the paper),
    with `P(k | h) = exp(h W_k + b_k) / sum_j exp(h W_j + b_j)`.

    # Parameters

    n_words
        The size of the vocabulary; words are numbered by frequency, the most frequent first.
    dim
        Units of the input: the `projection_dim` of the biLM.
    n_samples
        Trains on fewer words than the vocabulary (Jean et al. 2015; 8192 in bilm-tf): the target
        and this many negatives, drawn once per batch and shared by its rows. This loss is not a
        likelihood and is only for training; evaluation mode uses the whole vocabulary. `None`:
        trains on all words.
    """

    def __init__(self, n_words: int, dim: int, *, n_samples: int | None = None) -> None:
        super().__init__()
        self.n_words = n_words
        self.n_samples = n_samples
        self.weight = nn.Parameter(torch.empty(n_words, dim))
        self.bias = nn.Parameter(torch.empty(n_words))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new weights with bilm-tf's scale; the bias starts at 0."""
        nn.init.normal_(self.weight, std=1 / math.sqrt(self.weight.size(1)))
        nn.init.zeros_(self.bias)

    def forward(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """
        The training loss, of shape `()`: the negative log-likelihood, summed over the rows. Its
        products are computed in the type of `hidden`, or in autocast's, and summed in at least
        float32.

        # Parameters

        hidden
            Shape `(n, dim)`: the top layer of one direction, or of both directions concatenated,
            which is faster.
        targets
            Shape `(n,)`, int64: the numbers of the words to predict.
        """
        device = hidden.device.type
        dtype = hidden.dtype
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):
            hidden = hidden.to(self.weight.dtype)
            if self.training and self.n_samples is not None:
                columns = self._sampled_columns(hidden, targets, self.n_samples)
            else:
                columns = self._all_columns(hidden, targets)
            loss: torch.Tensor = _Loss.apply(  # type: ignore[no-untyped-call]
                _at_least_float32(hidden),
                _at_least_float32(columns.weight),
                _at_least_float32(columns.bias),
                _at_least_float32(columns.target_logits),
                columns.target_columns,
                dtype,
            )
            return loss

    def log_likelihood(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """
        The log-likelihood of each target over the whole vocabulary, of shape `(n,)`, at least
        float32, without gradients and in any mode. It is computed in the weights' type, even under
        autocast.
        """
        with torch.no_grad(), torch.autocast(hidden.device.type, enabled=False):
            hidden = hidden.detach().to(self.weight.dtype)
            is_exact = self.weight.dtype in (torch.float32, torch.float64)
            if self.weight.device.type == "cpu" and is_exact:
                return -self._losses_in_cache(hidden, targets)
            return -self._losses_in_chunks(hidden, targets)

    def _losses_in_cache(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """
        Shape `(n,)`: `-log P(k | h) = log sum_j exp(h W_j + b_j - z_k)`, with the target's logit
        `z_k`, one block of rows and words at a time, which fits in the processor's cache.
        """
        # Shape: (n, 1)
        target_logits = ((hidden * self.weight[targets]).sum(-1) + self.bias[targets]).unsqueeze(-1)
        # Bias and target are two more columns of the product. Shape: (n, dim + 2)
        extended = torch.cat([hidden, torch.ones_like(target_logits), -target_logits], -1)
        sums = hidden.new_zeros(len(hidden), dtype=torch.float64)
        n_rows = _ROWS_IN_CACHE * torch.get_num_threads()
        blocks_of_rows = torch.split(extended, n_rows)
        sums_of_blocks = torch.split(sums, n_rows)
        for start in range(0, self.n_words, _WORDS_IN_CACHE):
            weight = self.weight[start : start + _WORDS_IN_CACHE]
            bias = self.bias[start : start + _WORDS_IN_CACHE].unsqueeze(-1)
            # Shape: (dim + 2, n_words)
            columns = torch.cat([weight, bias, torch.ones_like(bias)], -1).T
            for rows, sums_of_rows in zip(blocks_of_rows, sums_of_blocks, strict=True):
                sums_of_rows.add_((rows @ columns).exp_().sum(-1))
        # The target is one of the words, so a value below 0 is a rounding error.
        losses = sums.log().clamp_(min=0.0).to(hidden.dtype)
        # The sum overflows if the target is less likely than exp(-88).
        is_inexact = losses == torch.inf
        if is_inexact.any():
            losses[is_inexact] = self._losses_in_chunks(hidden[is_inexact], targets[is_inexact])
        return losses

    def _losses_in_chunks(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        n_rows = max(1, LOGITS_AT_ONCE // self.n_words)
        losses = []
        for start in range(0, len(hidden), n_rows):
            rows = slice(start, start + n_rows)
            # Shape: (n_rows, n_words)
            logits = _at_least_float32(linear(hidden[rows], self.weight, self.bias))
            losses.append(cross_entropy(logits, targets[rows], reduction="none"))
        return torch.cat(losses)

    def _all_columns(self, hidden: torch.Tensor, targets: torch.Tensor) -> "_Columns":
        """A column for each word."""
        # Shape: (n,)
        target_logits = (hidden * embedding(targets, self.weight)).sum(-1) + self.bias[targets]
        return _Columns(self.weight, self.bias, target_logits, targets)

    def _sampled_columns(
        self, hidden: torch.Tensor, targets: torch.Tensor, n_samples: int
    ) -> "_Columns":
        """A column for each negative."""
        negatives = draw_negatives(self.n_words, n_samples, hidden.device)
        # One look-up for negatives and targets: the gradient of a look-up is as large as the weight
        # matrix.
        words = torch.cat([negatives.words, targets])
        n_negatives = len(negatives.words)
        sizes = [n_negatives, len(targets)]
        # Shape: (n_samples, dim) and (n, dim)
        weight, target_weight = torch.split(embedding(words, self.weight), sizes)
        # A word that is drawn often counts less each time; so does the target, as if it were drawn.
        # The loss is then lower than over all words, but the same logits minimise it, up to a
        # constant and terms of order 1 / n_samples.
        biases = embedding(words, self.bias.unsqueeze(1)).squeeze(1)
        # Shape: (n_samples,) and (n,)
        bias, target_bias = torch.split(biases - negatives.log_expected_counts(words), sizes)
        # Shape: (n,)
        target_logits = (hidden * target_weight).sum(-1) + target_bias
        # A table of all words finds a target that was drawn without comparing each row with each
        # sample. Shape: (n_words,)
        column_of_word = torch.full((self.n_words,), -1, device=hidden.device)
        column_of_word[negatives.words] = torch.arange(n_negatives, device=hidden.device)
        return _Columns(weight, bias, target_logits, column_of_word[targets])


class _Columns(NamedTuple):
    """The columns of the logits of some rows, which are words or samples of them."""

    weight: torch.Tensor
    """Shape `(n_columns, dim)`."""
    bias: torch.Tensor
    """Shape `(n_columns,)`."""
    target_logits: torch.Tensor
    """Shape `(n,)`."""
    target_columns: torch.Tensor
    """
    Shape `(n,)`: the column of each row's target, which is not a negative there; -1 without one.
    """


class _Loss(torch.autograd.Function):
    """
    The sum over rows of `log(exp(z_t) + sum_j exp(h W_j + b_j)) - z_t`, where `j` skips the row's
    column in `target_columns` if that is not -1. The gradient is computed along with the loss, one
    block of rows at a time, so only the logits of a block are in memory, and none is computed
    twice.
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, target_logits, target_columns, dtype):  # type: ignore[no-untyped-def]
        low_hidden = hidden.to(dtype)
        to_logits = PackedLinear(weight, dtype=dtype)
        to_hidden = PackedLinear(weight.t(), dtype=dtype)
        losses = torch.empty_like(target_logits)
        d_target_logits = torch.empty_like(target_logits)
        d_hidden = torch.empty_like(hidden)
        d_weight = torch.zeros_like(weight)
        d_bias = torch.zeros_like(bias)
        most_rows = _ROWS_AT_ONCE.get(hidden.device.type, LOGITS_AT_ONCE)
        n_rows = max(1, min(most_rows, LOGITS_AT_ONCE // len(weight)))
        for start in range(0, len(hidden), n_rows):
            rows = slice(start, start + n_rows)
            # Shape: (n_rows, n_columns), in place until the end of the block.
            logits = to_logits(low_hidden[rows]).to(bias.dtype).add_(bias)
            _exclude(logits, target_columns[rows])
            losses[rows], exponentials = _losses_of(logits, target_logits[rows])
            total = exponentials.total
            d_target_logits[rows] = (exponentials.target / total - 1.0).squeeze(1)
            # The probabilities are the exponentials divided by their total. Dividing the gradient
            # instead is less work, because its rows have dim units and not n_columns.
            low_exponentials = exponentials.columns.to(dtype)
            d_hidden[rows] = to_hidden(low_exponentials).to(hidden.dtype).div_(total)
            _add_product(d_weight, low_exponentials.t(), hidden[rows].div(total).to(dtype))
            d_bias.addmv_(exponentials.columns.t(), total.reciprocal().squeeze(1))
        ctx.save_for_backward(d_hidden, d_weight, d_bias, d_target_logits)
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        d_hidden, d_weight, d_bias, d_target_logits = ctx.saved_tensors
        return (
            d_hidden * d_loss,
            d_weight * d_loss,
            d_bias * d_loss,
            d_target_logits * d_loss,
            None,
            None,
        )


class _Exponentials(NamedTuple):
    """The exponential function of logits minus the largest logit of their row."""

    columns: torch.Tensor
    """Shape `(n_rows, n_columns)`: of each column's logit, 0 if it is excluded."""
    target: torch.Tensor
    """Shape `(n_rows, 1)`: of the target's logit."""
    total: torch.Tensor
    """Shape `(n_rows, 1)`: the sum of both."""


def _exclude(logits: torch.Tensor, target_columns: torch.Tensor) -> None:
    """Sets the logit in each row's target column to minus infinity, unless the column is -1."""
    # Shape: (n_rows, 1)
    target_columns = target_columns.unsqueeze(1)
    columns = target_columns.clamp_min(0)
    excluded = logits.gather(1, columns).masked_fill_(target_columns >= 0, -torch.inf)
    logits.scatter_(1, columns, excluded)


def _losses_of(
    logits: torch.Tensor, target_logits: torch.Tensor
) -> tuple[torch.Tensor, _Exponentials]:
    """The loss of each row of a block of logits, which become the exponentials in place."""
    # Shape: (n_rows, 1)
    target_logits = target_logits.unsqueeze(1)
    largest = torch.maximum(logits.amax(1, keepdim=True), target_logits)
    columns = logits.sub_(largest).exp_()
    target = (target_logits - largest).exp_()
    total = columns.sum(1, keepdim=True) + target
    losses = (total.log() + largest - target_logits).squeeze(1)
    return losses, _Exponentials(columns, target, total)


def _add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """`total += left @ right`, in one pass over the total if it has the type of the product."""
    if left.dtype == total.dtype:
        total.addmm_(left, right)
    else:
        total += left @ right


def _at_least_float32(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


@dataclass(frozen=True)
class Negatives:
    """
    Different words, drawn one after the other from the log-uniform distribution over frequency
    ranks,

        P(k) = log((k + 2) / (k + 1)) / log(n_words + 1),

    without words that were already drawn, as in TensorFlow's `log_uniform_candidate_sampler`.

    # Parameters

    words
        Shape `(n_samples,)`, int64, without duplicates.
    horizon
        Shape `()`: the time at which the drawing stopped (see `draw_negatives`).
    """

    words: torch.Tensor
    horizon: torch.Tensor

    def log_expected_counts(self, words: torch.Tensor) -> torch.Tensor:
        """
        The logarithm of how often each word is among the negatives on average, in the shape of
        `words`: `log(1 - exp(-r * horizon))` for a word with the rate `r`.

        Weighted by the inverse of this count, the drawn words represent all words: on average, the
        sum of `f(k) / count(k)` over them is exactly the sum of `f(k)` over the vocabulary, for
        every `f` (Duffield et al. 2007; Kool et al. 2019). TensorFlow's count,
        `1 - (1 - P(k)) ** n_tries`, uses tries instead of time; with it, this holds only
        approximately.
        """
        return torch.log(-torch.expm1(-_rates(words) * self.horizon))


def draw_negatives(n_words: int, n_samples: int, device: torch.device) -> Negatives:
    """
    Draws `n_samples` negatives (fewer than `n_words`) with torch's random generator for the device,
    without waiting for the device.

    Every word gets an exponential waiting time with a rate proportional to `P(k)`. Sorted by this
    time, the words are successive draws without replacement, and no draw is rejected. The horizon
    is the time of the first word that is not drawn.
    """
    # Shape: (n_words,)
    times = torch.empty(n_words, device=device).exponential_() / _rates(
        torch.arange(n_words, device=device)
    )
    # Shape: (n_samples + 1,), each
    first_times, words = times.topk(n_samples + 1, largest=False)
    return Negatives(words[:-1], first_times[-1])


def _rates(words: torch.Tensor) -> torch.Tensor:
    """P(k) without its denominator, which would only change the unit of time."""
    return torch.log1p(1.0 / (words + 1.0))
