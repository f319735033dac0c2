from functools import partial
from itertools import pairwise, product

import pytest
import torch
from allennlp.modules import ConditionalRandomField
from allennlp.modules.conditional_random_field.conditional_random_field import allowed_transitions
from allennlp.nn.util import viterbi_decode
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.modules.decoding import best_tags, bio_scores, crf_scores, tag_probabilities
from tests.largest_tensor import largest_tensor

BIOUL = dict(enumerate(["O", "B-X", "I-X", "L-X", "U-X", "U-Y"]))
BIO = ["O", "B-A", "I-B", "I-A", "B-B", "B-C", "I-C"]


def random_crf(rules):
    torch.manual_seed(0)
    return ConditionalRandomField(len(BIOUL), rules)


class TestBestTags:
    @given(st.lists(st.integers(1, 7), min_size=1, max_size=5), st.booleans(), st.integers(0, 99))
    def test_they_match_allennlps_crf(self, lengths, has_rules, seed):
        crf = random_crf(allowed_transitions("BIOUL", BIOUL) if has_rules else None)
        logits = 3 * torch.randn(
            len(lengths), 7, len(BIOUL), generator=torch.Generator().manual_seed(seed)
        )
        mask = torch.arange(7) < torch.tensor(lengths)[:, None]
        assert best_tags(logits, mask, crf_scores(crf)) == [
            path for path, _ in crf.viterbi_tags(logits, mask)
        ]

    @pytest.mark.parametrize("seed", range(5))
    def test_they_are_the_best_of_all_that_bio_allows(self, seed):
        """The scores favour `I-` tags, so the rules matter."""
        torch.manual_seed(seed)
        logits = torch.randn(6, 4, len(BIO)) + torch.tensor([0, 0, 1, 1, 0, 0, 1])
        found = best_tags(logits, torch.ones(6, 4, dtype=torch.bool), bio_scores(BIO))

        def is_allowed(path):
            names = ["O", *(BIO[tag] for tag in path)]
            return all(
                not tag.startswith("I-") or before[1:] == tag[1:] for before, tag in pairwise(names)
            )

        allowed = list(filter(is_allowed, product(range(len(BIO)), repeat=4)))
        for scores, tags in zip(logits.tolist(), found, strict=True):
            best = max(
                allowed,
                key=lambda path: sum(row[tag] for row, tag in zip(scores, path, strict=True)),
            )
            assert tags == list(best)

    def test_they_match_allennlps_semantic_roles(self):
        """In float64, because `viterbi_decode` adds 100,000 to the scores."""
        torch.manual_seed(0)
        rules = bio_scores(BIO)
        lengths = torch.tensor([7, 1, 30, 12])
        logits = 2 * torch.randn(4, 30, len(BIO))
        predicted = best_tags(logits, torch.arange(30) < lengths.unsqueeze(-1), rules)
        for row, tags in enumerate(predicted):
            scores = logits[row, : lengths[row]].double().log_softmax(-1)
            expected, _ = viterbi_decode(
                scores, rules.transitions.double(), allowed_start_transitions=rules.starts.double()
            )
            assert tags == expected


def test_tag_probabilities_are_shares_of_all_sequences():
    crf = random_crf(None)
    logits = torch.randn(4, 4, len(BIOUL), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(4) < torch.tensor([4, 1, 3, 2])[:, None]
    tags = [[1, 2, 3, 0], [4], [0, 1, 3], [5, 4]]
    spans = [[(0, 2), (3, 3), (1, 3), (0, 3)], [(0, 0)], [], [(1, 1), (0, 0)]]
    of_sentences, found = tag_probabilities(crf, logits, mask, tags, spans)
    for row, (sentence, of_sentence) in enumerate(zip(tags, spans, strict=True)):
        n_words = len(sentence)
        sequences = torch.tensor(list(product(range(len(BIOUL)), repeat=n_words)))
        scores = logits[row, range(n_words), sequences].sum(1)
        scores += crf.start_transitions[sequences[:, 0]] + crf.end_transitions[sequences[:, -1]]
        numerators = (scores + crf.transitions[sequences[:, :-1], sequences[:, 1:]].sum(1)).exp()
        # A sentence is the span of all its words, also if it has no other spans.
        for probability, (first, last) in [
            (of_sentences[row], (0, n_words - 1)),
            *zip(found[row], of_sentence, strict=True),
        ]:
            held = (sequences[:, first : last + 1] == torch.tensor(sentence[first : last + 1])).all(
                1
            )
            assert probability == pytest.approx(
                (numerators[held].sum() / numerators.sum()).item(), rel=1e-5
            )
    assert list(map(len, found)) == list(map(len, spans))


def log_partition(crf, logits):
    """The logarithm of the sum over all tags of one sentence without padding."""
    scores = crf.start_transitions + logits[0]
    for of_word in logits[1:]:
        scores = (scores.unsqueeze(1) + crf.transitions).logsumexp(0) + of_word
    return (scores + crf.end_transitions).logsumexp(0)


def test_tag_probabilities_match_sums_without_the_other_tags_of_a_span():
    crf = random_crf(None).double()
    lengths = [60, 7, 33]
    logits = 4 * torch.randn(
        3, 60, len(BIOUL), generator=torch.Generator().manual_seed(1), dtype=torch.double
    )
    mask = torch.arange(60) < torch.tensor(lengths)[:, None]
    tags = best_tags(logits, mask, crf_scores(crf))
    spans = [
        [(first, min(first + width, n - 1)) for first in range(n) for width in (0, 5)]
        for n in lengths
    ]
    _, found = tag_probabilities(crf, logits, mask, tags, spans)
    for row, n_words in enumerate(lengths):
        scores = logits[row, :n_words]
        for probability, (first, last) in zip(found[row], spans[row], strict=True):
            held = scores.clone()
            held[first : last + 1] = -torch.inf
            inside = torch.arange(first, last + 1), tags[row][first : last + 1]
            held[inside] = scores[inside]
            expected = (log_partition(crf, held) - log_partition(crf, scores)).exp().item()
            assert probability == pytest.approx(expected, rel=1e-9)


def test_the_memory_of_tag_probabilities_does_not_grow_with_the_spans():
    crf, n_words = random_crf(None), 200
    logits, mask = torch.randn(1, n_words, len(BIOUL)), torch.ones(1, n_words, dtype=torch.bool)
    for n_spans in (1, n_words):
        spans = [[(word, word) for word in range(n_spans)]]
        compute = partial(tag_probabilities, crf, logits, mask, [[0] * n_words], spans)
        # In float64.
        assert largest_tensor(compute) == 8 * logits.numel()
