"""The best tags under a CRF, for all sentences of a batch at once."""

import torch
from allennlp.modules import ConditionalRandomField

__all__ = ["best_tags"]

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


def _ruled(transitions: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    return transitions * allowed + _FORBIDDEN * (1 - allowed)
