import pytest
import torch
from allennlp.nn.util import min_value_of_dtype
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.modules import best_span


def brute_force(start: list[float], end: list[float], max_length: int) -> tuple[list[int], float]:
    """All spans one after another."""
    spans = [(i, j) for i in range(len(start)) for j in range(i, min(i + max_length, len(end)))]
    first, last = max(spans, key=lambda span: start[span[0]] + end[span[1]])
    return [first, last], start[first] + end[last]


class TestBestSpan:
    @settings(max_examples=200)
    @given(
        lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
        max_length=st.integers(1, 45),
        seed=st.integers(0, 10_000),
    )
    def test_it_is_the_best_of_all_short_ones(self, lengths, max_length, seed):
        """Oracle: brute force on each row without its padding; texts shorter and longer than the longest span."""
        generator = torch.Generator().manual_seed(seed)
        mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        start, end = (
            (3 * torch.randn(mask.shape, generator=generator))
            .masked_fill(~mask, min_value_of_dtype(torch.float))
            .log_softmax(-1)
            for _ in range(2)
        )
        spans, scores = best_span(start, end, max_length)
        for row, length in enumerate(lengths):
            expected, score = brute_force(start[row, :length].tolist(), end[row, :length].tolist(), max_length)
            assert spans[row].tolist() == expected
            assert scores[row].item() == pytest.approx(score, abs=1e-5)

    def test_without_a_limit_it_is_that_of_allennlp(self):
        """Oracle: AllenNLP's `get_best_span`."""
        from allennlp_models.rc.models.utils import get_best_span

        torch.manual_seed(0)
        start, end = torch.randn(2, 16, 30).log_softmax(-1)
        assert torch.equal(best_span(start, end, 30)[0], get_best_span(start, end))

    def test_the_only_word_is_the_answer(self):
        """Oracle: by hand."""
        spans, scores = best_span(torch.zeros(1, 1), torch.zeros(1, 1), 17)
        assert (spans.tolist(), scores.tolist()) == ([[0, 0]], [0.0])

    def test_a_better_span_that_is_too_long_is_not_taken(self):
        """Oracle: by hand: 0 to 2 has the largest sum, but three words."""
        start, end = torch.tensor([[0.0, -2.0, -3.0]]), torch.tensor([[-5.0, -4.0, 0.0]])
        assert best_span(start, end, 3)[0].tolist() == [[0, 2]]
        assert best_span(start, end, 2)[0].tolist() == [[1, 2]]
        assert best_span(start, end, 1)[0].tolist() == [[2, 2]]
