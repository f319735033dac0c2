"""Perplexity of both directions of a biLM."""

import time

import torch
from allennlp.nn.util import dist_reduce_sum
from allennlp.training.metrics import Metric

__all__ = ["Perplexity"]


@Metric.register("elmo_perplexity")
class Perplexity(Metric):
    """
    `exp` of the mean negative log-likelihood of a prediction, for each direction, and the mean of
    the two, which is what the paper and bilm-tf report (section 3.4). In distributed training, it
    covers all processes. `unknown_id` is the number for all words that are not in the vocabulary.
    """

    def __init__(self, unknown_id: int) -> None:
        self._unknown_id = unknown_id
        self.reset()

    def reset(self) -> None:
        self._losses = torch.zeros(2, dtype=torch.float64)
        self._n_predictions = 0
        self._n_words = 0
        self._n_unknown = 0
        self._n_timed = 0
        self._since: float | None = None

    def __call__(self, losses: torch.Tensor, n_predictions: int, word_ids: torch.Tensor) -> None:
        """
        `losses`, of shape `(2,)`, is the negative log-likelihood of all predictions of a batch,
        forward and backward, in nats; `n_predictions` is their number in each direction: one per
        word, and one for the end of each sentence. `word_ids` has shape `(batch_size, timesteps)`,
        with -1 where there is no word.
        """
        if self._since is None:
            # The first batch is not timed, because its start is unknown.
            self._since = time.monotonic()
        else:
            self._n_timed += n_predictions
        self._losses += losses.detach().double().cpu()
        self._n_predictions += n_predictions
        self._n_words += int((word_ids >= 0).sum())
        self._n_unknown += int((word_ids == self._unknown_id).sum())

    def get_metric(self, reset: bool = False) -> dict[str, float]:
        """
        `forward_perplexity`, `backward_perplexity`, `perplexity`, `unknown_share` (of the words),
        and `tokens_per_second` since the last reset. All are 0 before the first batch.
        """
        seconds = 0.0 if self._since is None else time.monotonic() - self._since
        # Even without a batch, because a sum over processes waits for each of them.
        n_timed = dist_reduce_sum(self._n_timed)
        n_predictions = dist_reduce_sum(self._n_predictions)
        reduced_losses = [dist_reduce_sum(float(loss)) for loss in self._losses]
        losses = torch.tensor(reduced_losses, dtype=torch.float64)
        n_words = dist_reduce_sum(self._n_words)
        n_unknown = dist_reduce_sum(self._n_unknown)
        if reset:
            self.reset()
        forward = backward = 0.0
        if n_predictions:
            forward, backward = (losses / n_predictions).exp().tolist()
        return {
            "forward_perplexity": forward,
            "backward_perplexity": backward,
            "perplexity": (forward + backward) / 2,
            "unknown_share": n_unknown / max(1, n_words),
            "tokens_per_second": n_timed / seconds if seconds else 0.0,
        }
