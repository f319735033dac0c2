"""The best tags that the BIO scheme allows, for all sentences of a batch at once."""

from collections.abc import Mapping

import torch

__all__ = ["BioDecoder"]


class BioDecoder(torch.nn.Module):
    """
    Viterbi's algorithm with the rules of BIO and no other scores between tags: an `I-X` must come after a `B-X` or
    another `I-X`. So for a `B-X` or `O` only the best tag before it counts, and for an `I-X` the better of two: a step
    takes time linear in the number of tags. AllenNLP's `viterbi_decode` decodes one sentence at a time, compares all
    pairs of tags, and with rules for the first tag loses the precision of float32 to scores of 100,000.

    # Parameters

    tags : `Mapping[int, str]`
        The name of each index, counted from 0.
    """

    # With a row for each tag `I-X`: its index, and those of `B-X` and `I-X`.
    inside: torch.Tensor
    before_inside: torch.Tensor

    def __init__(self, tags: Mapping[int, str]) -> None:
        super().__init__()
        index = {tag: number for number, tag in tags.items()}
        inside = [tag for tag in index if tag.startswith("I-")]
        # Where a `B-X` does not exist, its `I-X` is never reached.
        before = [[index.get(f"B-{tag[2:]}", index[tag]), index[tag]] for tag in inside]
        self.register_buffer("inside", torch.tensor([index[tag] for tag in inside], dtype=torch.long), persistent=False)
        self.register_buffer("before_inside", torch.tensor(before, dtype=torch.long).view(-1, 2), persistent=False)

    @torch.no_grad()
    def forward(self, logits: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
        """
        # Parameters

        logits : `torch.Tensor`
            Shape `(batch_size, timesteps, n_tags)`: the score of each tag.
        mask : `torch.BoolTensor`
            Shape `(batch_size, timesteps)`: true at words, which come before the padding.

        # Returns

        `List[List[int]]`
            For each sentence the tags with the highest sum of scores, one for each word.
        """
        if not logits.size(1):
            return [[] for _ in logits]
        # The score of the best tags up to a word, by the last of them. Shape: (batch_size, n_tags)
        scores = logits[:, 0].float().index_fill(1, self.inside, -torch.inf)
        # For each word but the first, and each of its tags, the one before it. Shape: (batch_size, n_tags), each
        pointers: list[torch.Tensor] = []
        for step in range(1, logits.size(1)):
            # Shape: (batch_size, 1)
            best, best_tag = scores.max(1, keepdim=True)
            # Shape: (batch_size, n_inside, 2)
            of_two = scores[:, self.before_inside]
            # Shape: (batch_size, n_inside)
            better, which = of_two.max(2)
            before = best_tag.expand(scores.shape).index_copy(
                1, self.inside, self.before_inside.expand(len(scores), -1, 2).gather(2, which.unsqueeze(2)).squeeze(2)
            )
            now = best.expand(scores.shape).index_copy(1, self.inside, better) + logits[:, step].float()
            # Padding changes no score, and keeps the tag of the last word.
            is_word = mask[:, step, None]
            itself = torch.arange(scores.size(1), device=scores.device)
            pointers.append(torch.where(is_word, before, itself))
            scores = torch.where(is_word, now, scores)
        path = [scores.argmax(1, keepdim=True)]
        for pointer in reversed(pointers):
            path.append(pointer.gather(1, path[-1]))
        # Shape: (batch_size, timesteps)
        tags = torch.cat(path[::-1], 1)
        lengths = mask.sum(1).tolist()
        return [row[:length] for row, length in zip(tags.tolist(), lengths, strict=True)]
