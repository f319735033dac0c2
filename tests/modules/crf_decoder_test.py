from itertools import pairwise, product

import pytest
import torch
from allennlp.modules import ConditionalRandomField
from allennlp.modules.conditional_random_field.conditional_random_field import allowed_transitions
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.modules import best_tags, span_probabilities

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


class TestSpanProbabilities:
    @pytest.mark.parametrize("has_ends", [False, True])
    def test_they_are_shares_of_all_sequences(self, has_ends):
        """Oracle: AllenNLP's likelihood of every sequence; sentences of one to four words, and spans of one to all."""
        crf = random_crf(None, has_ends=has_ends)
        logits = torch.randn(4, 4, len(TAGS), generator=torch.Generator().manual_seed(0))
        mask = torch.arange(4) < torch.tensor([4, 1, 3, 2])[:, None]
        tags = [[1, 2, 3, 0], [4], [0, 1, 3], [5, 4]]
        spans = [[(0, 2), (3, 3), (1, 3), (0, 3)], [(0, 0)], [], [(1, 1), (0, 0)]]
        found = span_probabilities(crf, logits, mask, tags, spans)
        for row, (sentence, of_sentence) in enumerate(zip(tags, spans, strict=True)):
            n_words = len(sentence)
            sequences = torch.tensor(list(product(range(len(TAGS)), repeat=n_words)))
            repeated = logits[row : row + 1, :n_words].expand(len(sequences), -1, -1)
            every_word = torch.ones_like(sequences, dtype=torch.bool)
            numerators = crf._joint_likelihood(repeated, crf.transitions, sequences, every_word).exp()
            for probability, (first, last) in zip(found[row], of_sentence, strict=True):
                held = (sequences[:, first : last + 1] == torch.tensor(sentence[first : last + 1])).all(1)
                assert probability == pytest.approx((numerators[held].sum() / numerators.sum()).item(), rel=1e-5)
        assert list(map(len, found)) == list(map(len, spans))

    def test_a_batch_may_have_no_spans(self):
        """Oracle: by hand."""
        crf = random_crf(None, has_ends=True)
        assert span_probabilities(crf, torch.zeros(2, 0, len(TAGS)), torch.zeros(2, 0).bool(), [[], []], [[], []]) == [
            [],
            [],
        ]
        assert span_probabilities(crf, torch.zeros(0, 3, len(TAGS)), torch.zeros(0, 3).bool(), [], []) == []
