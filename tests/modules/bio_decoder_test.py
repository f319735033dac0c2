from itertools import product

import pytest
import torch
from allennlp.nn.util import viterbi_decode

from elmo_tasks.modules import BioDecoder

TAGS = dict(enumerate(["O", "B-A", "I-B", "I-A", "B-B", "B-C", "I-C"]))


def is_allowed(before: str, tag: str) -> bool:
    return not tag.startswith("I-") or before[1:] == tag[1:]


class TestBioDecoder:
    @pytest.mark.parametrize("seed", range(5))
    def test_the_tags_are_the_best_of_all_that_bio_allows(self, seed):
        """Oracle: all sequences of four words, enumerated; scores favour tags inside, so that the rules matter."""
        torch.manual_seed(seed)
        logits = torch.randn(6, 4, len(TAGS), dtype=torch.float64) + torch.tensor([0, 0, 1, 1, 0, 0, 1])
        found = BioDecoder(TAGS)(logits, torch.ones(6, 4, dtype=torch.bool))
        for scores, tags in zip(logits.tolist(), found, strict=True):
            allowed = (
                path
                for path in product(TAGS, repeat=4)
                if all(
                    is_allowed(before, TAGS[tag])
                    for before, tag in zip(["O", *map(TAGS.get, path)], path, strict=False)
                )
            )
            best = max(allowed, key=lambda path: sum(row[tag] for row, tag in zip(scores, path, strict=True)))
            assert tags == list(best)

    def test_the_tags_are_those_of_allennlp(self):
        """Oracle: `viterbi_decode`, a sentence at a time, with the same rules as scores between pairs of tags."""
        torch.manual_seed(0)
        n_tags = len(TAGS)
        # In float64: it adds 100,000 to the scores.
        transitions = torch.zeros(n_tags, n_tags, dtype=torch.float64)
        start = torch.zeros(n_tags, dtype=torch.float64)
        for index, tag in TAGS.items():
            start[index] = 0.0 if is_allowed("O", tag) else -torch.inf
            for before, tag_before in TAGS.items():
                transitions[before, index] = 0.0 if is_allowed(tag_before, tag) else -torch.inf
        lengths = torch.tensor([7, 1, 30, 12])
        mask = torch.arange(30) < lengths.unsqueeze(-1)
        logits = 2 * torch.randn(4, 30, n_tags)
        for row, tags in enumerate(BioDecoder(TAGS)(logits, mask)):
            expected, _ = viterbi_decode(
                logits[row, : lengths[row]].double().log_softmax(-1), transitions, allowed_start_transitions=start
            )
            assert tags == expected

    def test_padding_does_not_matter(self):
        """Oracle: each sentence alone, an empty one too; padding with large numbers."""
        torch.manual_seed(0)
        lengths = [5, 0, 2, 1]
        mask = torch.arange(5) < torch.tensor(lengths).unsqueeze(-1)
        logits = torch.where(mask.unsqueeze(-1), torch.randn(4, 5, len(TAGS)), 1000 * torch.randn(4, 5, len(TAGS)))
        decoder = BioDecoder(TAGS)
        found = decoder(logits, mask)
        assert [len(tags) for tags in found] == lengths
        for row, length in enumerate(lengths):
            assert decoder(logits[row : row + 1, :length], mask[row : row + 1, :length]) == [found[row]]

    def test_a_tag_without_its_beginning_is_never_found(self):
        """Oracle: by hand."""
        logits = torch.tensor([[[0.0, 9.0], [0.0, 9.0]]])
        assert BioDecoder({0: "O", 1: "I-A"})(logits, torch.ones(1, 2, dtype=torch.bool)) == [[0, 0]]

    def test_half_precision_is_summed_in_float32(self):
        """Oracle: the same numbers in float32; in bfloat16 a long sum loses all of them."""
        torch.manual_seed(0)
        logits = torch.randn(2, 200, len(TAGS)).to(torch.bfloat16)
        mask = torch.ones(2, 200, dtype=torch.bool)
        decoder = BioDecoder(TAGS)
        assert decoder(logits, mask) == decoder(logits.float(), mask)

    def test_its_state_is_empty(self):
        """Oracle: archives hold trained parameters only."""
        assert not BioDecoder(TAGS).state_dict()
