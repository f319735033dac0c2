"""The best tags under a CRF and how likely they are, for all sentences of a batch at once."""

import math
from collections.abc import Sequence

import torch
from allennlp.modules import ConditionalRandomField

__all__ = ["best_tags", "span_probabilities"]

# As AllenNLP's: of tags that are all forbidden, the least bad ones are found.
_FORBIDDEN = -10_000.0


@torch.no_grad()
def best_tags(crf: ConditionalRandomField, logits: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
    """
    Viterbi's algorithm. The same tags as those of `crf.viterbi_tags`, which decodes one sentence after the other.

    # Parameters

    crf
        With its transitions, and the rules for them.
    logits
        Shape `(batch_size, timesteps, n_tags)`.
    mask
        Shape `(batch_size, timesteps)`: true at words, which come before the padding.

    # Returns

    `List[List[int]]`
        For each sentence the tags with the highest score, one for each word.
    """
    if not logits.size(1):
        return [[] for _ in logits]
    n_tags = logits.size(2)
    allowed = crf._constraint_mask
    # Row: the tag of a word; column: the tag of the word before it. Shape: (n_tags, n_tags)
    transitions = _ruled(crf.transitions, allowed[:n_tags, :n_tags]).T.contiguous()
    starts, ends = (
        _ruled(getattr(crf, name) if crf.include_start_end_transitions else torch.zeros_like(rule), rule)
        for name, rule in (("start_transitions", allowed[n_tags, :n_tags]), ("end_transitions", allowed[:n_tags, -1]))
    )
    # The score of the best tags up to a word, by the last of them. Shape: (batch_size, n_tags)
    scores = logits[:, 0] + starts
    itself = torch.arange(n_tags, device=logits.device)
    # For each word but the first, and each of its tags, the one before it. Shape: (batch_size, n_tags), each
    pointers: list[torch.Tensor] = []
    for step in range(1, logits.size(1)):
        # Shape: (batch_size, n_tags), both
        best, before = (scores.unsqueeze(1) + transitions).max(2)
        # Padding changes no score, and keeps the tag of the last word.
        is_word = mask[:, step, None]
        pointers.append(torch.where(is_word, before, itself))
        scores = torch.where(is_word, best + logits[:, step], scores)
    path = [(scores + ends).argmax(1, keepdim=True)]
    for pointer in reversed(pointers):
        path.append(pointer.gather(1, path[-1]))
    # Shape: (batch_size, timesteps)
    tags = torch.cat(path[::-1], 1)
    return [row[:length] for row, length in zip(tags.tolist(), mask.sum(1).tolist(), strict=True)]


@torch.no_grad()
def span_probabilities(
    crf: ConditionalRandomField,
    logits: torch.Tensor,
    mask: torch.Tensor,
    tags: Sequence[Sequence[int]],
    spans: Sequence[Sequence[tuple[int, int]]],
) -> list[list[float]]:
    """
    The probability of the tags of each span, summed over all tags of the words around it, by the forward and backward
    algorithm. Which transitions are forbidden is ignored, as in the likelihood of AllenNLP's CRF.

    # Parameters

    crf
        With its transitions.
    logits
        Shape `(batch_size, timesteps, n_tags)`.
    mask
        Shape `(batch_size, timesteps)`: true at words, which come before the padding.
    tags
        The tags of each sentence, one for each word.
    spans
        Of each sentence: the first and the last word of each span.

    # Returns

    `List[List[float]]`
        A probability for each span.
    """
    # A probability is the difference of two large numbers.
    logits, transitions = logits.double(), crf.transitions.double()
    starts, ends = (
        getattr(crf, name).double() if crf.include_start_end_transitions else logits.new_zeros(logits.size(2))
        for name in ("start_transitions", "end_transitions")
    )
    batch_size, n_words, _ = logits.shape
    if not any(spans):
        return [[] for _ in range(batch_size)]
    # The sum over all tags of the words before, by the tag of a word, whose score is in it, and of the words after, in
    # logarithms. Shape: (batch_size, n_tags), each
    before = [logits[:, 0] + starts]
    for step in range(1, n_words):
        before.append((before[-1].unsqueeze(2) + transitions).logsumexp(1) + logits[:, step])
    after = [ends.expand(batch_size, -1)]
    for step in range(n_words - 1, 0, -1):
        following = (transitions + (logits[:, step] + after[-1]).unsqueeze(1)).logsumexp(2)
        # The last word comes before the padding.
        after.append(torch.where(mask[:, step, None], following, ends))
    after.reverse()
    totals = (before[0] + after[0]).logsumexp(1).tolist()
    # Shape: (timesteps, batch_size, n_tags), both
    up_to, beyond = torch.stack(before).cpu().numpy(), torch.stack(after).cpu().numpy()
    emissions, bigrams = logits.cpu().numpy(), transitions.cpu().numpy()
    probabilities: list[list[float]] = [[] for _ in range(batch_size)]
    for row, (sentence, of_sentence) in enumerate(zip(tags, spans, strict=True)):
        for first, last in of_sentence:
            score = up_to[first, row, sentence[first]] + beyond[last, row, sentence[last]] - totals[row]
            for word in range(first + 1, last + 1):
                score += bigrams[sentence[word - 1], sentence[word]] + emissions[row, word, sentence[word]]
            # Rounding may have made the logarithm of 1 positive.
            probabilities[row].append(math.exp(min(score, 0.0)))
    return probabilities


def _ruled(transitions: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    return transitions * allowed + _FORBIDDEN * (1 - allowed)
