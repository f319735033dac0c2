"""The best tags of a batch, and the probabilities of sentences and spans."""

from collections.abc import Sequence

import torch
from allennlp.modules import ConditionalRandomField
from torch.nn.utils.rnn import pad_sequence

__all__ = ["best_tags", "bio_scores", "crf_scores", "tag_probabilities"]

Scores = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def crf_scores(crf: ConditionalRandomField) -> Scores:
    """
    The scores of a CRF, including the rules for its transitions: from a tag (row) to the next one (column), of shape
    `(n_tags, n_tags)`, and of the first and the last tag, of shape `(n_tags,)`.
    """
    n_tags, allowed = crf.num_tags, crf._constraint_mask
    scores = crf.transitions, crf.start_transitions, crf.end_transitions
    rules = allowed[:n_tags, :n_tags], allowed[n_tags, :n_tags], allowed[:n_tags, n_tags + 1]
    # As in AllenNLP: if all tag sequences are forbidden, the least bad one is found.
    transitions, starts, ends = (s * rule - 10_000.0 * (1 - rule) for s, rule in zip(scores, rules, strict=True))
    return transitions, starts, ends


def bio_scores(tags: Sequence[str]) -> Scores:
    """The rules of the BIO scheme in the form of `crf_scores`: an `I-X` follows a `B-X` or another `I-X`."""
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
    For each sentence, the tags with the highest sum of scores, one per word. From shape `(batch_size, timesteps,
    n_tags)`, with words before the padding, and the scores of `crf_scores` or `bio_scores`.
    """
    logits = logits.float()
    transitions, starts, ends = (scores.to(logits) for scores in (transitions, starts, ends))
    # Shape: (batch_size, timesteps), (batch_size,)
    tags, lengths = logits.argmax(2), mask.sum(1)
    # If the tags with the highest logits also have the best transitions, as most do under the rules of BIO, no others
    # are better. Shape: (batch_size,)
    last = tags.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    is_best = (starts[tags[:, 0]] == starts.max()) & (ends[last] == ends.max())
    is_best &= ((transitions[tags[:, :-1], tags[:, 1:]] == transitions.max()) | ~mask[:, 1:]).all(1)
    if not is_best.all():
        tags[~is_best] = _viterbi(logits[~is_best], mask[~is_best], transitions, starts, ends)
    return [row[:length] for row, length in zip(tags.tolist(), lengths.tolist(), strict=True)]


def _viterbi(
    logits: torch.Tensor, mask: torch.Tensor, transitions: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor
) -> torch.Tensor:
    """The Viterbi algorithm: shape `(batch_size, timesteps)`, with the last word's tag in the padding."""
    # Row: the tag of a word; column: the tag of the word before it. Shape: (n_tags, n_tags)
    from_before = transitions.T.contiguous()
    # For each word, the score of the best tags up to it, by its own tag. Shape: (batch_size, n_tags), each
    scores = [logits[:, 0] + starts]
    for step in range(1, logits.size(1)):
        # Not `max`, which also finds the previous tags, and takes ten times as long on a CPU.
        best = (scores[-1].unsqueeze(1) + from_before).amax(2) + logits[:, step]
        # Padding changes no score.
        scores.append(torch.where(mask[:, step, None], best, scores[-1]))
    # Shape: (batch_size,), each, from the last word to the first
    path = [(scores[-1] + ends).argmax(1)]
    for step in range(logits.size(1) - 1, 0, -1):
        before = (scores[step - 1] + from_before[path[-1]]).argmax(1)
        # Padding keeps the tag of the last word.
        path.append(torch.where(mask[:, step], before, path[-1]))
    return torch.stack(path[::-1], 1)


def _before(crf: ConditionalRandomField, logits: torch.Tensor) -> torch.Tensor:
    """
    The forward sums, as logarithms: for each word and each of its tags, over all tags of the words before it, including
    its own score, in the shape of `logits`. Forbidden transitions count too, as in the likelihood of AllenNLP's CRF.
    """
    sums = [logits[:, 0] + crf.start_transitions]
    for step in range(1, logits.size(1)):
        sums.append((sums[-1].unsqueeze(2) + crf.transitions).logsumexp(1) + logits[:, step])
    return torch.stack(sums, 1)


def _after(crf: ConditionalRandomField, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The backward sums: for each word and each of its tags, over all tags of the words after it."""
    ends = crf.end_transitions.to(logits)
    sums = [ends.expand_as(logits[:, 0])]
    for step in range(logits.size(1) - 1, 0, -1):
        following = (crf.transitions + (logits[:, step] + sums[-1]).unsqueeze(1)).logsumexp(2)
        # Nothing follows the last word.
        sums.append(torch.where(mask[:, step, None], following, ends))
    return torch.stack(sums[::-1], 1)


@torch.no_grad()
def tag_probabilities(
    crf: ConditionalRandomField,
    logits: torch.Tensor,
    mask: torch.Tensor,
    tags: Sequence[Sequence[int]],
    spans: Sequence[Sequence[tuple[int, int]]],
) -> tuple[list[float], list[list[float]]]:
    """
    The probability of all tags of each sentence, and of each span's tags, summed over all tags of the other words.
    `spans` has the first and the last word of each span, by sentence.
    """
    # Shape: (batch_size, timesteps)
    ids = pad_sequence([torch.tensor(row, device=logits.device) for row in tags], batch_first=True).long()
    # float64, because a log-probability is the difference of two large numbers.
    logits = logits[:, : ids.size(1)].double()
    # Shape: (batch_size, timesteps, n_tags)
    before = _before(crf, logits)
    # The scores of the given tags from the second word to each word. Shape: (batch_size, timesteps)
    steps = crf.transitions[ids[:, :-1], ids[:, 1:]] + logits.gather(2, ids.unsqueeze(2)).squeeze(2)[:, 1:]
    path = torch.nn.functional.pad(steps.cumsum(1), (1, 0))
    # Shape: (batch_size,), each
    every, end = torch.arange(len(ids), device=ids.device), mask.sum(1) - 1
    of_all = (before[every, end] + crf.end_transitions).logsumexp(1)
    whole = before[every, 0, ids[:, 0]] + path[every, end] + crf.end_transitions[ids[every, end]]
    # Rounding may make the logarithm of 1 positive.
    of_sentences: list[float] = (whole - of_all).clamp(max=0.0).exp().tolist()
    rows_and_words = [(row, *span) for row, of_sentence in enumerate(spans) for span in of_sentence]
    if not rows_and_words:
        return of_sentences, [[] for _ in spans]
    after = _after(crf, logits, mask)
    # Shape: (n_spans,), each
    rows, first, last = torch.tensor(rows_and_words, device=logits.device).unbind(1)
    inside = path[rows, last] - path[rows, first]
    sums = before[rows, first, ids[rows, first]] + inside + after[rows, last, ids[rows, last]]
    found = iter((sums - of_all[rows]).clamp(max=0.0).exp().tolist())
    return of_sentences, [[next(found) for _ in of_sentence] for of_sentence in spans]
