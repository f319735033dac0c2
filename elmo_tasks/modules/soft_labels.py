"""The labels of a model as probabilities, and the loss of a model that learns from them (Hinton et al. 2015)."""

from typing import Optional

import torch
from allennlp.modules import ConditionalRandomField

from elmo_tasks.modules.viterbi import log_partition

__all__ = ["soft_labels", "soft_loss", "tag_marginals"]


def soft_labels(
    logits: torch.Tensor, mask: Optional[torch.Tensor] = None, crf: Optional[ConditionalRandomField] = None
) -> torch.Tensor:
    """The probabilities of labels; of a tagger with a CRF the marginals of the tags of each word."""
    return logits.softmax(-1) if crf is None or mask is None else tag_marginals(crf, logits, mask)


def soft_loss(
    logits: torch.Tensor,
    teacher: torch.Tensor,
    mask: Optional[torch.Tensor] = None,
    crf: Optional[ConditionalRandomField] = None,
) -> torch.Tensor:
    """
    The cross entropy of a model's probabilities with its teacher's, which have the shape of the logits. As in the loss
    of a CRF, the words of a sentence add up.
    """
    probabilities = soft_labels(logits, mask, crf)
    entropy = -(teacher * probabilities.clamp_min(torch.finfo(probabilities.dtype).tiny).log()).sum(-1)
    return entropy.mean() if mask is None else (entropy * mask).sum() / len(entropy)


def tag_marginals(crf: ConditionalRandomField, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    The probability of each tag of each word under a CRF, summed over the tags of all other words: shape
    `(batch_size, timesteps, n_tags)`, zero at padding, which comes after the words.
    """
    is_trained = torch.is_grad_enabled()
    with torch.enable_grad():
        scores = logits if logits.requires_grad else logits.detach().requires_grad_()
        # A marginal is the derivative of the logarithm of the partition function with respect to the score of the tag.
        total = log_partition(crf, scores, mask).sum()
        (marginals,) = torch.autograd.grad(total, scores, create_graph=is_trained)
    return marginals
