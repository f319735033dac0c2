from itertools import chain, repeat

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
from tests.vectors.helpers import recorded

SENTENCES = st.lists(st.integers(0, 12).map(lambda length: ["w"] * length), max_size=60)


class TestChunks:
    @given(SENTENCES, st.integers(1, 20))
    def test_they_are_the_sentences_in_their_order(self, sentences, batch_tokens):
        all_chunks = list(chunks(sentences, batch_tokens))
        assert list(chain.from_iterable(all_chunks)) == sentences
        for chunk in all_chunks:
            assert chunk
            assert sum(len(sentence) + 2 for sentence in chunk[:-1]) < 8 * batch_tokens

    def test_no_more_is_read_than_a_chunk(self):
        read = []
        sentences = recorded(repeat(["w"] * 5, 10**9), read)
        assert len(next(chunks(sentences, batch_tokens=70))) == 80
        assert len(read) == 80


class TestOneAhead:
    def test_an_item_comes_after_the_next_one_was_made(self):
        made = []
        n_made = []
        for item in one_ahead(recorded(range(4), made)):
            assert item == len(n_made)
            n_made.append(len(made))
        assert n_made == [2, 3, 4, 4]


class TestInOrder:
    @given(st.permutations(range(8)))
    def test_an_item_comes_once_all_before_it_have_come(self, numbers):
        made = []
        items = []
        for item in in_order(recorded(zip(numbers, numbers, strict=True), made)):
            items.append(item)
            assert {(number, number) for number in range(item + 1)} <= set(made)
        assert items == list(range(8))


class TestBatchesByLength:
    @given(SENTENCES, st.integers(1, 40))
    def test_each_sentence_is_in_one_batch_that_is_not_too_large(self, sentences, batch_tokens):
        batches = list(batches_by_length(sentences, batch_tokens))
        rows = list(chain.from_iterable(batches))
        assert sorted(rows) == list(range(len(sentences)))
        lengths = [len(sentences[row]) for row in rows]
        assert lengths == sorted(lengths, reverse=True)
        for batch in batches:
            longest = max(len(sentences[row]) for row in batch)
            assert len(batch) == 1 or len(batch) * (longest + 2) <= batch_tokens

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

        all_rows = []
        for rows, lengths in compute_by_length(compute, sentences, batch_tokens, "batch_tokens"):
            assert len(rows) <= most
            assert lengths == [len(sentences[row]) for row in rows]
            all_rows += rows
        assert all_rows == list(chain.from_iterable(batches_by_length(sentences, batch_tokens)))

    def test_a_sentence_that_does_not_fit_is_an_error(self):
        def compute(rows):
            raise torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of "
                "79.10 GiB. Including non-PyTorch memory, ..."
            )

        sentence = "a sentence of 7,000 words, which batch_words"
        memory = "Tried to allocate 9.00 GiB, GPU 0 .* 79.10 GiB"
        with pytest.raises(torch.OutOfMemoryError, match=f"^{sentence} .* {memory}$"):
            list(compute_by_length(compute, [["w"] * 7000, ["w"]], 8192, "batch_words"))
