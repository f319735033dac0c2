"""The probabilities that a model gives to its labels, for texts without gold."""

from collections.abc import Collection
from typing import Any, NamedTuple

import torch
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField
from allennlp.nn.util import get_text_field_mask

__all__ = ["SoftLabels", "check_labels", "check_model", "soft_labels", "tag_marginals"]


class SoftLabels(NamedTuple):
    """
    # Parameters

    logits
        Shape `(n_items, n_labels)`; an item is a text, or of a tagger a word, the words of one text after another.
    probabilities
        Of the labels of each item, at the temperature. Shape `(n_items, n_labels)`.
    ends
        Where the items of each text end. Shape `(batch_size,)`.
    is_tagger
        Whether the items are words.
    """

    logits: torch.Tensor
    probabilities: torch.Tensor
    ends: torch.Tensor
    is_tagger: bool


def check_model(model: Model) -> None:
    """
    # Raises

    `ValueError`
        If the model neither tags words nor gives a text one label.
    """
    if type(model).default_predictor not in _PREDICTORS:
        raise ValueError(
            "teacher and student must be models of named entities, parts of speech, sentiment or entailment, but one "
            f"is a {type(model).__name__}"
        )


def check_labels(of_teacher: Collection[str], of_student: Collection[str]) -> None:
    """
    # Raises

    `ValueError`
        If they are not the same.
    """
    if set(of_teacher) != set(of_student):
        only = {
            "teacher": sorted(set(of_teacher) - set(of_student)),
            "student": sorted(set(of_student) - set(of_teacher)),
        }
        found = "; ".join(f"only the {who} has {', '.join(which)}" for who, which in only.items() if which)
        raise ValueError(
            f"teacher and student must have the same labels, but {found}: give a teacher of the student's task, "
            "trained on the labelled data of the student"
        )


_PREDICTORS = ("elmo_sentence", "elmo_snli")


def soft_labels(model: Model, batch: dict[str, Any], temperature: float) -> SoftLabels:
    """
    What a model says of a batch without gold. Of a tagger with a CRF, the probabilities of a word are the marginals of
    its tags over all sequences, with all scores divided by the temperature.

    # Parameters

    model
        See `check_model`.
    batch
        Its inputs.
    temperature
        By which logits are divided; above 1 the probabilities are more even.
    """
    output = model(**batch)
    logits: torch.Tensor = output["logits"]
    if logits.dim() == 2:
        ends = torch.arange(1, len(logits) + 1, device=logits.device)
        return SoftLabels(logits, (logits / temperature).softmax(-1), ends, False)
    # Shape: (batch_size, timesteps)
    mask = get_text_field_mask(batch["tokens"])
    crf = getattr(model, "crf", None)
    if isinstance(crf, ConditionalRandomField):
        probabilities = tag_marginals(crf, logits, mask, temperature)
    else:
        probabilities = (logits / temperature).softmax(-1)
    return SoftLabels(logits[mask], probabilities[mask], mask.sum(1).cumsum(0), True)


def tag_marginals(
    crf: ConditionalRandomField, logits: torch.Tensor, mask: torch.Tensor, temperature: float = 1.0
) -> torch.Tensor:
    """
    The probability of each tag of each word under a CRF, summed over the tags of all other words. They have gradients
    if the logits do.

    # Parameters

    crf
        With its transitions; which of them are forbidden is ignored, as in its likelihood.
    logits
        Shape `(batch_size, timesteps, n_tags)`.
    mask
        Shape `(batch_size, timesteps)`: true at words, which come before the padding.
    temperature
        By which all scores are divided.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, timesteps, n_tags)`, zero where there is no word.
    """
    is_trained = torch.is_grad_enabled() and (logits.requires_grad or crf.transitions.requires_grad)
    with torch.enable_grad():
        scores = (logits if is_trained else logits.detach()) / temperature
        if not scores.requires_grad:
            # Also where the transitions alone are trained.
            scores.requires_grad_()
        # A marginal is the derivative of the partition function by the score of the tag.
        (marginals,) = torch.autograd.grad(
            _partition(crf, scores, mask, temperature).sum(), scores, create_graph=is_trained
        )
    return marginals


def _partition(
    crf: ConditionalRandomField, scores: torch.Tensor, mask: torch.Tensor, temperature: float
) -> torch.Tensor:
    """The logarithm of the sum over all sequences of tags: shape `(batch_size,)`."""
    transitions = crf.transitions / temperature
    # Shape: (batch_size, n_tags)
    alpha = scores[:, 0]
    if crf.include_start_end_transitions:
        alpha = alpha + crf.start_transitions / temperature
    for step in range(1, scores.size(1)):
        following = torch.logsumexp(alpha.unsqueeze(2) + transitions, 1) + scores[:, step]
        alpha = torch.where(mask[:, step, None], following, alpha)
    if crf.include_start_end_transitions:
        alpha = alpha + crf.end_transitions / temperature
    # A row without words has no sequence.
    return torch.logsumexp(alpha, -1) * mask[:, 0]
