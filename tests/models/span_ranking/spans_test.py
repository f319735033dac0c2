import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.models.span_ranking import SpanEmbedder, spans_without_crossings


def embedder(max_width: int = 3, dropout: float = 0.0) -> SpanEmbedder:
    torch.manual_seed(0)
    return SpanEmbedder(
        embedded_dim=5, hidden_dim=4, max_width=max_width, width_dim=2, dropout=dropout
    )


def crosses(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two spans overlap and neither contains the other."""
    words = set(range(one[0], one[1] + 1))
    other_words = set(range(other[0], other[1] + 1))
    is_nested = words <= other_words or other_words <= words
    return not words.isdisjoint(other_words) and not is_nested


class TestSpanEmbedder:
    @pytest.mark.parametrize("lengths", [[4, 2, 5], [1], [1, 1, 1], [12]])
    @pytest.mark.parametrize("max_width", [1, 3, 10])
    def test_all_spans_within_a_sentence_are_found(self, lengths, max_width):
        n_words = sum(lengths)
        sentences = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
        module = embedder(max_width)
        spans = module.spans(sentences)
        vectors = module(torch.randn(n_words, 5), torch.randn(n_words, 4), spans)
        expected = []
        for start in range(n_words):
            for end in range(start, min(start + max_width, n_words)):
                if sentences[start] == sentences[end]:
                    expected.append([start, end])
        assert spans.tolist() == expected
        assert vectors.shape == (len(expected), 2 * 4 + 2 + 5)

    def test_a_vector_is_start_end_width_and_head(self):
        module = embedder()
        assert module.get_output_dim() == 15
        embedded = torch.randn(7, 5)
        hidden = torch.randn(7, 4)
        spans = module.spans(torch.tensor([0, 0, 0, 0, 1, 1, 1]))
        vectors = module(embedded, hidden, spans)
        for (start, end), vector in zip(spans.tolist(), vectors, strict=True):
            scores = hidden[start : end + 1] @ module.head.weight[0]
            weights = scores.exp() / scores.exp().sum()
            head = weights @ embedded[start : end + 1]
            width = module.width_embedding.weight[end - start]
            torch.testing.assert_close(vector, torch.cat([hidden[start], hidden[end], width, head]))

    def test_dropout_applies_only_to_the_width(self):
        module = embedder(dropout=0.5).train()
        vectors = module(torch.ones(50, 5), torch.ones(50, 4), module.spans(torch.zeros(50)))
        zero = vectors == 0
        assert not zero[:, :8].any() and not zero[:, 10:].any()
        assert 0.3 < zero[:, 8:10].float().mean() < 0.7


SPANS = st.builds(
    lambda start, width: (start, start + width), st.integers(0, 15), st.integers(0, 9)
)


class TestSpansWithoutCrossings:
    @given(
        spans=st.sets(SPANS, max_size=60),
        limit=st.integers(0, 30),
        seed=st.integers(0, 1000),
    )
    def test_the_best_spans_that_do_not_cross_better_ones_are_kept(self, spans, limit, seed):
        ordered = sorted(spans)
        generator = torch.Generator().manual_seed(seed)
        # Few distinct scores, because ties go to the span that comes first in the text.
        scores = torch.randint(8, (len(ordered),), generator=generator).float()
        taken: list[int] = []
        for row in sorted(range(len(ordered)), key=lambda row: (-scores[row], row)):
            is_crossing = any(crosses(ordered[row], ordered[other]) for other in taken)
            if len(taken) < limit and not is_crossing:
                taken.append(row)
        rows = torch.tensor(ordered, dtype=torch.long).reshape(-1, 2)
        kept = spans_without_crossings(rows, scores, limit)
        assert kept.tolist() == sorted(taken)
        assert kept.dtype == torch.long
