"""The best tags of sentences, and how likely spans of them are, for all sentences of a batch at once."""

import math
from collections.abc import Sequence

import torch
from allennlp.modules import ConditionalRandomField

__all__ = ["best_tags", "bio_scores", "crf_scores", "span_probabilities"]

Scores = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

# As AllenNLP's: of tags that are all forbidden, the least bad ones are found.
_FORBIDDEN = -10_000.0


def crf_scores(crf: ConditionalRandomField) -> Scores:
    """
    The scores of a CRF and the rules for its transitions: from a tag (row) to the next one (column), of shape
    `(n_tags, n_tags)`, and of the first and of the last tag, of shape `(n_tags,)`.
    """
    n_tags, allowed = crf.num_tags, crf._constraint_mask
    return (
        _ruled(crf.transitions, allowed[:n_tags, :n_tags]),
        _ruled(crf.start_transitions, allowed[n_tags, :n_tags]),
        _ruled(crf.end_transitions, allowed[:n_tags, n_tags + 1]),
    )


def bio_scores(tags: Sequence[str]) -> Scores:
    """The rules of the BIO scheme, as `crf_scores`: an `I-X` comes after a `B-X` or another `I-X`."""
    inside = torch.tensor([tag.startswith("I-") for tag in tags])
    # Shape: (n_tags, n_tags)
    same = torch.tensor([[before[1:] == tag[1:] and before != "O" for tag in tags] for before in tags])
    transitions = torch.zeros(len(tags), len(tags)).masked_fill(inside & ~same, -torch.inf)
    zeros = torch.zeros(len(tags))
    return transitions, zeros.masked_fill(inside, -torch.inf), zeros


@torch.no_grad()
def best_tags(
    logits: torch.Tensor, mask: torch.Tensor, transitions: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor
) -> list[list[int]]:
    """
    Viterbi's algorithm: for each sentence the tags with the highest sum of scores, one for each word. AllenNLP decodes
    one sentence after the other. From shape `(batch_size, timesteps, n_tags)`, with words before the padding, and the
    scores of `crf_scores` or `bio_scores`.
    """
    logits = logits.float()
    # Row: the tag of a word; column: the tag of the word before it. Shape: (n_tags, n_tags)
    from_before = transitions.to(logits).T.contiguous()
    # The score of the best tags up to a word, by the last of them. Shape: (batch_size, n_tags)
    scores = logits[:, 0] + starts.to(logits)
    itself = torch.arange(logits.size(2), device=logits.device)
    # For each word but the first, and each of its tags, the one before it. Shape: (batch_size, n_tags), each
    pointers: list[torch.Tensor] = []
    for step in range(1, logits.size(1)):
        # Shape: (batch_size, n_tags), both
        best, before = (scores.unsqueeze(1) + from_before).max(2)
        # Padding changes no score, and keeps the tag of the last word.
        is_word = mask[:, step, None]
        pointers.append(torch.where(is_word, before, itself))
        scores = torch.where(is_word, best + logits[:, step], scores)
    path = [(scores + ends.to(logits)).argmax(1, keepdim=True)]
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
    algorithm. Which transitions are forbidden is ignored, as in the likelihood of AllenNLP's CRF. `spans` are the first
    and the last words of each sentence's spans.
    """
    # A probability is the difference of two large numbers.
    logits = logits.double()
    transitions, starts, ends = (
        scores.double() for scores in (crf.transitions, crf.start_transitions, crf.end_transitions)
    )
    batch_size, n_words, _ = logits.shape
    # The logarithms of the sums over all tags of the words before, by the tag of a word, with its score, and of the
    # words after, without it. Shape: (batch_size, n_tags), each
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
