from itertools import pairwise

import torch
from allennlp.modules import ConditionalRandomField
from allennlp.modules.conditional_random_field.conditional_random_field import allowed_transitions
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.modules import best_tags

TAGS = dict(enumerate(["O", "B-X", "I-X", "L-X", "U-X", "U-Y"]))


def random_crf(rules: list[tuple[int, int]] | None, *, has_ends: bool) -> ConditionalRandomField:
    torch.manual_seed(0)
    return ConditionalRandomField(len(TAGS), rules, include_start_end_transitions=has_ends)


class TestBestTags:
    @settings(max_examples=20)
    @given(st.lists(st.integers(0, 7), min_size=1, max_size=5), st.booleans(), st.booleans(), st.integers(0, 99))
    def test_they_are_allennlps(self, lengths, has_rules, has_ends, seed):
        """Oracle: `viterbi_tags` of AllenNLP's CRF; sentences of one word, and without any, among the others."""
        crf = random_crf(allowed_transitions("BIOUL", TAGS) if has_rules else None, has_ends=has_ends)
        logits = 3 * torch.randn(len(lengths), 7, len(TAGS), generator=torch.Generator().manual_seed(seed))
        mask = torch.arange(7) < torch.tensor(lengths)[:, None]
        assert best_tags(crf, logits, mask) == [path for path, _ in crf.viterbi_tags(logits, mask)]

    def test_a_batch_may_have_no_words(self):
        """Oracle: by hand."""
        crf = random_crf(None, has_ends=True)
        assert best_tags(crf, torch.zeros(2, 0, len(TAGS)), torch.zeros(2, 0, dtype=torch.bool)) == [[], []]
        assert best_tags(crf, torch.zeros(0, 3, len(TAGS)), torch.zeros(0, 3, dtype=torch.bool)) == []

    def test_forbidden_tags_are_never_chosen(self):
        """Oracle: the rules of BIOUL for each pair of tags, and for the first and the last, against large logits."""
        rules = set(allowed_transitions("BIOUL", TAGS))
        crf = random_crf(list(rules), has_ends=True)
        logits = 1000.0 * torch.randn(20, 7, len(TAGS), generator=torch.Generator().manual_seed(0))
        for tags in best_tags(crf, logits, torch.ones(20, 7, dtype=torch.bool)):
            assert {(len(TAGS), tags[0]), *pairwise(tags), (tags[-1], len(TAGS) + 1)} <= rules
