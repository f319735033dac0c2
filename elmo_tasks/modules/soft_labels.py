"""The labels of a model as probabilities, and the loss of a model that learns from them (Hinton et al. 2015)."""

from typing import Optional

import torch
from allennlp.modules import ConditionalRandomField

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
    `(batch_size, timesteps, n_tags)`, zero at padding, which comes after the words. They have gradients if the logits
    do. Which transitions are forbidden is ignored, as in the likelihood of the CRF.
    """
    is_trained = torch.is_grad_enabled() and (logits.requires_grad or crf.transitions.requires_grad)
    with torch.enable_grad():
        scores = logits if is_trained else logits.detach()
        if not scores.requires_grad:
            # Also where the transitions alone are trained.
            scores.requires_grad_()
        # A marginal is the derivative of the partition function by the score of the tag.
        (marginals,) = torch.autograd.grad(_partition(crf, scores, mask).sum(), scores, create_graph=is_trained)
    return marginals


def _partition(crf: ConditionalRandomField, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The logarithm of the sum over all sequences of tags: shape `(batch_size,)`."""
    # Shape: (batch_size, n_tags)
    alpha = scores[:, 0] + crf.start_transitions
    for step in range(1, scores.size(1)):
        following = torch.logsumexp(alpha.unsqueeze(2) + crf.transitions, 1) + scores[:, step]
        alpha = torch.where(mask[:, step, None], following, alpha)
    # A row without words has no sequence.
    return torch.logsumexp(alpha + crf.end_transitions, -1) * mask[:, 0]
