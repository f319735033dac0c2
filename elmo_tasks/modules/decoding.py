"""The best tags of a batch, and the probabilities of sentences and spans."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from allennlp.modules import ConditionalRandomField
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

__all__ = ["TransitionScores", "best_tags", "bio_scores", "crf_scores", "tag_probabilities"]


class TransitionScores(NamedTuple):
    """The scores that sequences of tags have in addition to the logits of their words."""

    transitions: torch.Tensor
    """Shape `(n_tags, n_tags)`: from a tag (row) to the next one (column)."""
    starts: torch.Tensor
    """Shape `(n_tags,)`: of the first tag."""
    ends: torch.Tensor
    """Shape `(n_tags,)`: of the last tag."""


def crf_scores(crf: ConditionalRandomField) -> TransitionScores:
    """The scores of a CRF, including the rules for its transitions."""
    n_tags = crf.num_tags
    is_allowed = crf._constraint_mask
    return TransitionScores(
        transitions=_penalised(crf.transitions, is_allowed[:n_tags, :n_tags]),
        starts=_penalised(crf.start_transitions, is_allowed[n_tags, :n_tags]),
        ends=_penalised(crf.end_transitions, is_allowed[:n_tags, n_tags + 1]),
    )


def _penalised(scores: torch.Tensor, is_allowed: torch.Tensor) -> torch.Tensor:
    """As in AllenNLP: if all tag sequences are forbidden, the least bad one is the best."""
    return scores * is_allowed - 10_000.0 * (1 - is_allowed)


def bio_scores(tags: Sequence[str]) -> TransitionScores:
    """The rules of the BIO scheme: an `I-X` follows a `B-X` or another `I-X`."""
    n_tags = len(tags)
    transitions = torch.zeros(n_tags, n_tags)
    starts = torch.zeros(n_tags)
    for column, tag in enumerate(tags):
        if not tag.startswith("I-"):
            continue
        starts[column] = -torch.inf
        for row, previous in enumerate(tags):
            if previous == "O" or previous[1:] != tag[1:]:
                transitions[row, column] = -torch.inf
    return TransitionScores(transitions, starts, ends=torch.zeros(n_tags))


@torch.no_grad()
def best_tags(
    logits: torch.Tensor, mask: torch.Tensor, scores: TransitionScores
) -> list[list[int]]:
    """
    The tags with the highest sum of scores for each sentence, one per word, from logits of shape
    `(batch_size, timesteps, n_tags)` with words before the padding.
    """
    logits = logits.float()
    scores = TransitionScores(*(tensor.to(logits) for tensor in scores))
    # Shape: (batch_size, timesteps)
    tags = logits.argmax(2)
    # Shape: (batch_size,)
    lengths = mask.sum(1)
    # Shape: (batch_size,)
    is_best = _has_best_transitions(tags, mask, lengths, scores)
    if not is_best.all():
        tags[~is_best] = _viterbi(logits[~is_best], mask[~is_best], scores)
    return [row[:length] for row, length in zip(tags.tolist(), lengths.tolist(), strict=True)]


def _has_best_transitions(
    tags: torch.Tensor, mask: torch.Tensor, lengths: torch.Tensor, scores: TransitionScores
) -> torch.Tensor:
    """
    Whether tags have the best transitions, of shape `(batch_size,)`. If the tags with the highest
    logits do, as most under the rules of BIO, no other sequence is better.
    """
    transitions, starts, ends = scores
    last_words = (lengths - 1).clamp(min=0)
    last_tags = tags.gather(1, last_words.unsqueeze(1)).squeeze(1)
    has_best_start = starts[tags[:, 0]] == starts.max()
    has_best_end = ends[last_tags] == ends.max()
    is_best_step = transitions[tags[:, :-1], tags[:, 1:]] == transitions.max()
    has_best_steps = (is_best_step | ~mask[:, 1:]).all(1)
    return has_best_start & has_best_end & has_best_steps


def _viterbi(logits: torch.Tensor, mask: torch.Tensor, scores: TransitionScores) -> torch.Tensor:
    """
    The Viterbi algorithm: shape `(batch_size, timesteps)`, with the last word's tag in the padding.
    """
    # Row: the tag of a word; column: the tag of the word before it. Shape: (n_tags, n_tags)
    from_previous = scores.transitions.T.contiguous()
    # For each word, the score of the best tags up to it, by its own tag. Shape:
    # (batch_size, n_tags) each
    best_scores = [logits[:, 0] + scores.starts]
    for step in range(1, logits.size(1)):
        previous = best_scores[-1]
        # Not `max`, which also finds the previous tags, and takes ten times as long on a CPU.
        best = (previous.unsqueeze(1) + from_previous).amax(2) + logits[:, step]
        # Padding changes no score.
        best_scores.append(torch.where(mask[:, step, None], best, previous))
    # The tags from the last word to the first. Shape: (batch_size,) each
    reversed_tags = [(best_scores[-1] + scores.ends).argmax(1)]
    for step in range(logits.size(1) - 1, 0, -1):
        next_tag = reversed_tags[-1]
        tag = (best_scores[step - 1] + from_previous[next_tag]).argmax(1)
        # Padding keeps the tag of the last word.
        reversed_tags.append(torch.where(mask[:, step], tag, next_tag))
    return torch.stack(reversed_tags[::-1], 1)


def _forward_sums(crf: ConditionalRandomField, logits: torch.Tensor) -> torch.Tensor:
    """
    The forward variables of the CRF, as logarithms and in the shape of `logits`: for each word and
    each of its tags, the sum over all tags of the words before it, including its own score.
    Forbidden transitions count too, as in the likelihood of AllenNLP's CRF.
    """
    # Shape: (batch_size, n_tags) each
    sums = [logits[:, 0] + crf.start_transitions]
    for step in range(1, logits.size(1)):
        # The sum over the tags of the previous word, dimension 1 of (batch_size, n_tags, n_tags).
        summed = (sums[-1].unsqueeze(2) + crf.transitions).logsumexp(1)
        sums.append(summed + logits[:, step])
    return torch.stack(sums, 1)


def _backward_sums(
    crf: ConditionalRandomField, logits: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """
    The backward variables of the CRF, as `_forward_sums`: the sum over all tags of the words after
    a word, without its own score.
    """
    # Shape: (n_tags,)
    ends = crf.end_transitions.to(logits)
    # From the last word to the first. Shape: (batch_size, n_tags) each
    reversed_sums = [ends.expand_as(logits[:, 0])]
    for step in range(logits.size(1) - 1, 0, -1):
        next_scores = logits[:, step] + reversed_sums[-1]
        # The sum over the tags of the next word, dimension 2 of (batch_size, n_tags, n_tags).
        summed = (crf.transitions + next_scores.unsqueeze(1)).logsumexp(2)
        # Nothing follows the last word.
        reversed_sums.append(torch.where(mask[:, step, None], summed, ends))
    return torch.stack(reversed_sums[::-1], 1)


@torch.no_grad()
def tag_probabilities(
    crf: ConditionalRandomField,
    logits: torch.Tensor,
    mask: torch.Tensor,
    tags: Sequence[Sequence[int]],
    spans: Sequence[Sequence[tuple[int, int]]],
) -> tuple[list[float], list[list[float]]]:
    """
    The probability of all tags of each sentence, and of each span's tags, summed over all tags of
    the other words. `spans` has the first and the last word of each span, by sentence.
    """
    # Shape: (batch_size, timesteps)
    ids = pad_sequence(
        [torch.tensor(row, device=logits.device) for row in tags], batch_first=True
    ).long()
    # float64, because a log-probability is the difference of two large numbers.
    logits = logits[:, : ids.size(1)].double()
    # Shape: (batch_size, timesteps, n_tags)
    forward_sums = _forward_sums(crf, logits)
    # The scores of the given tags from the second word to each word. Shape: (batch_size, timesteps)
    tag_logits = logits.gather(2, ids.unsqueeze(2)).squeeze(2)
    step_scores = crf.transitions[ids[:, :-1], ids[:, 1:]] + tag_logits[:, 1:]
    path_scores = pad(step_scores.cumsum(1), (1, 0))
    # Shape: (batch_size,) each
    rows = torch.arange(len(ids), device=ids.device)
    last_words = mask.sum(1) - 1
    log_partition = (forward_sums[rows, last_words] + crf.end_transitions).logsumexp(1)
    sentence_scores = (
        forward_sums[rows, 0, ids[:, 0]]
        + path_scores[rows, last_words]
        + crf.end_transitions[ids[rows, last_words]]
    )
    sentence_probabilities = _probabilities(sentence_scores - log_partition)

    rows_and_words = []
    for row, sentence_spans in enumerate(spans):
        for first_word, last_word in sentence_spans:
            rows_and_words.append((row, first_word, last_word))
    if not rows_and_words:
        return sentence_probabilities, [[] for _ in spans]
    backward_sums = _backward_sums(crf, logits, mask)
    # Shape: (n_spans,) each
    rows, first, last = torch.tensor(rows_and_words, device=logits.device).unbind(1)
    span_scores = (
        forward_sums[rows, first, ids[rows, first]]
        + (path_scores[rows, last] - path_scores[rows, first])
        + backward_sums[rows, last, ids[rows, last]]
    )
    span_probabilities = iter(_probabilities(span_scores - log_partition[rows]))
    return sentence_probabilities, [[next(span_probabilities) for _ in row] for row in spans]


def _probabilities(logarithms: torch.Tensor) -> list[float]:
    # Rounding may make the logarithm of 1 positive.
    probabilities: list[float] = logarithms.clamp(max=0.0).exp().tolist()
    return probabilities
