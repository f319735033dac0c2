import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.vectors.batching import (
    batches_by_length,
    chunks,
    compute_by_length,
    in_order,
    one_ahead,
)

SENTENCES = st.lists(st.integers(0, 12).map(lambda length: ["w"] * length), max_size=60)


class TestChunks:
    @given(SENTENCES, st.integers(1, 20))
    def test_they_are_the_sentences_in_their_order(self, sentences, batch_tokens):
        found = list(chunks(sentences, batch_tokens))
        assert [sentence for chunk in found for sentence in chunk] == sentences
        for chunk in found:
            assert chunk
            assert sum(len(sentence) + 2 for sentence in chunk[:-1]) < 8 * batch_tokens

    def test_no_more_is_read_than_a_chunk(self):
        read = []
        found = chunks((read.append(index) or ["w"] * 5 for index in range(10**9)), batch_tokens=70)
        assert len(next(found)) == len(read) == 80


class TestOneAhead:
    def test_an_item_comes_after_the_next_one_was_made(self):
        made = []
        items = one_ahead(made.append(number) or number for number in range(4))
        assert [(item, len(made)) for item in items] == [(0, 2), (1, 3), (2, 4), (3, 4)]


class TestInOrder:
    @given(st.permutations(range(8)))
    def test_an_item_comes_once_all_before_it_have_come(self, numbers):
        made = []
        items = in_order(made.append(number) or (number, number) for number in numbers)
        found = [(item, set(made)) for item in items]
        assert [item for item, _ in found] == list(range(8))
        assert all(set(range(item + 1)) <= before for item, before in found)


class TestBatchesByLength:
    @given(SENTENCES, st.integers(1, 40))
    def test_each_sentence_is_in_one_batch_that_is_not_too_large(self, sentences, batch_tokens):
        found = list(batches_by_length(sentences, batch_tokens))
        assert sorted(row for batch in found for row in batch) == list(range(len(sentences)))
        lengths = [[len(sentences[row]) for row in batch] for batch in found]
        for batch in lengths:
            assert len(batch) == 1 or len(batch) * (max(batch) + 2) <= batch_tokens
        in_order = [length for batch in lengths for length in batch]
        assert in_order == sorted(in_order, reverse=True)

    def test_batches_are_full(self):
        sentences = [["w"] * length for length in (1, 8, 3, 3, 18)]
        assert list(batches_by_length(sentences, 15)) == [[4], [1], [2, 3, 0]]


class TestComputeByLength:
    @given(SENTENCES, st.integers(1, 40), st.integers(1, 4))
    def test_a_batch_that_does_not_fit_is_halved(self, sentences, batch_tokens, most):
        def compute(rows):
            if len(rows) > most:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return [len(sentences[row]) for row in rows]

        found = list(compute_by_length(compute, sentences, batch_tokens, "batch_tokens"))
        expected = [row for rows in batches_by_length(sentences, batch_tokens) for row in rows]
        assert [row for rows, _ in found for row in rows] == expected
        for rows, lengths in found:
            assert len(rows) <= most and lengths == [len(sentences[row]) for row in rows]

    def test_a_sentence_that_does_not_fit_is_an_error(self):
        def compute(rows):
            memory = "CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of 79.10 GiB"
            raise torch.OutOfMemoryError(f"{memory}. Including non-PyTorch memory, ...")

        message = "^a sentence of 7,000 words, which batch_words .* Tried to allocate 9.00 GiB, GPU 0 .* 79.10 GiB$"
        with pytest.raises(torch.OutOfMemoryError, match=message):
            list(compute_by_length(compute, [["w"] * 7000, ["w"]], 8192, "batch_words"))
