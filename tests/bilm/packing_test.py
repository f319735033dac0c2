from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.bilm.packing import PackedSentences, pack_sentences, sentence_lengths

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=9)
MAX_TOKENS = st.none() | st.integers(1, 40)


def packed(lengths: list[int], n_padding: int = 0, max_tokens: int | None = None) -> list[PackedSentences]:
    return list(pack_sentences(np.array(lengths), max(lengths) + n_padding, max_tokens))


def words_of(lengths: list[int]) -> list[list[int]]:
    """The numbers of the words of each sentence, the two boundaries around them."""
    n_words = sum(lengths)
    numbers = iter(range(n_words))
    return [[n_words, *(next(numbers) for _ in range(length)), n_words + 1] for length in lengths]


class TestPackSentences:
    @settings(max_examples=200)
    @given(LENGTHS, st.integers(0, 3), MAX_TOKENS)
    def test_each_direction_reads_each_sentence_between_its_boundaries(self, lengths, n_padding, max_tokens):
        """Oracle: the sentences as lists, the backward ones reversed; packed words dealt out step by step in Python."""
        expected = words_of(lengths)
        rows_seen = []
        for part in packed(lengths, n_padding, max_tokens):
            rows_seen += part.rows.tolist()
            assert part.words.shape == (2, sum(part.batch_sizes))
            for direction in (0, 1):
                sentences: list[list[int]] = [[] for _ in part.rows]
                words = iter(part.words[direction].tolist())
                for size in part.batch_sizes:
                    for sentence in sentences[:size]:
                        sentence.append(next(words))
                for row, sentence in zip(part.rows.tolist(), sentences, strict=True):
                    assert sentence == (expected[row] if direction == 0 else expected[row][::-1])
        assert sorted(rows_seen) == list(range(len(lengths)))

    @settings(max_examples=200)
    @given(LENGTHS, st.integers(0, 3), MAX_TOKENS)
    def test_each_word_comes_back_to_its_place(self, lengths, n_padding, max_tokens):
        """Oracle: the number of each word at its row and column, in Python; `sources` of both directions lead to it."""
        timesteps = max(lengths) + n_padding
        expected = {
            row * timesteps + column: number
            for row, sentence in enumerate(words_of(lengths))
            for column, number in enumerate(sentence[1:-1])
        }
        found: dict[int, int] = {}
        for part in packed(lengths, n_padding, max_tokens):
            assert part.sources.shape == (2, len(part.positions))
            for words, sources in zip(part.words, part.sources, strict=True):
                numbers = dict(zip(part.positions.tolist(), words[sources].tolist(), strict=True))
                assert numbers == {place: expected[place] for place in numbers}
            assert not found.keys() & numbers.keys()
            found |= numbers
        assert found == expected

    @settings(max_examples=200)
    @given(LENGTHS, MAX_TOKENS)
    def test_before_a_word_is_the_one_that_is_read_before_it(self, lengths, max_tokens):
        """Oracle: pairs of neighbours in the sentences as lists, the backward ones reversed, with their rows."""
        found: list[set[tuple[int, int, int]]] = [set(), set()]
        n_found = 0
        for part in packed(lengths, 0, max_tokens):
            n_first = part.batch_sizes[0]
            assert part.rows_of_words.shape == part.words[0].shape
            rows = part.rows_of_words[n_first:].tolist()
            assert part.rows_of_words[part.before].tolist() == rows
            for pairs, words in zip(found, part.words, strict=True):
                pairs.update(zip(rows, words[part.before].tolist(), words[n_first:].tolist(), strict=True))
            n_found += len(rows)
        sentences = words_of(lengths)
        assert found[0] == {(row, *pair) for row, words in enumerate(sentences) for pair in pairwise(words)}
        assert found[1] == {(row, *pair) for row, words in enumerate(sentences) for pair in pairwise(words[::-1])}
        assert n_found == sum(lengths) + len(lengths)

    @settings(max_examples=200)
    @given(LENGTHS, MAX_TOKENS)
    def test_the_longest_sentences_come_first(self, lengths, max_tokens):
        """Oracle: the lengths of the sentences in their order, and how many are longer than each step."""
        parts = packed(lengths, 0, max_tokens)
        in_order = [lengths[row] for part in parts for row in part.rows.tolist()]
        assert in_order == sorted(lengths, reverse=True)
        for part in parts:
            bounded = [lengths[row] + 2 for row in part.rows.tolist()]
            assert part.batch_sizes == [sum(length > step for length in bounded) for step in range(max(bounded))]

    @settings(max_examples=200)
    @given(LENGTHS, st.integers(1, 40))
    def test_a_part_is_as_large_as_may_be(self, lengths, max_tokens):
        """Oracle: the sum of lengths with boundaries; only one sentence alone may go beyond, and the next must."""
        parts = [[lengths[row] + 2 for row in part.rows.tolist()] for part in packed(lengths, 0, max_tokens)]
        for part in parts:
            assert sum(part) <= max_tokens or len(part) == 1
        for part, after in pairwise(parts):
            assert sum(part) + after[0] > max_tokens

    def test_without_a_limit_there_is_one_part(self):
        """Oracle: the number of parts."""
        assert len(packed([3, 0, 9, 1])) == 1
        assert len(packed([3, 0, 9, 1], max_tokens=1)) == 4

    def test_sentences_of_equal_length_keep_their_order(self):
        """Oracle: by hand."""
        (part,) = packed([2, 3, 2, 0, 3, 2])
        assert part.rows.tolist() == [1, 4, 0, 2, 5, 3]

    def test_empty_sentences_are_their_boundaries(self):
        """Oracle: by hand: begin, then end, and the other way round; no word has a place."""
        (part,) = packed([0, 0])
        assert part.batch_sizes == [2, 2]
        assert part.words.tolist() == [[0, 0, 1, 1], [1, 1, 0, 0]]
        assert part.positions.tolist() == []
        assert part.sources.shape == (2, 0)

    def test_two_sentences_by_hand(self):
        """Oracle: `a b` and `c`, numbered 0, 1 and 2, padded to three columns; 3 and 4 are begin and end."""
        (part,) = packed([2, 1], n_padding=1)
        assert part.batch_sizes == [2, 2, 2, 1]
        assert part.words.tolist() == [[3, 3, 0, 2, 1, 4, 4], [4, 4, 1, 2, 0, 3, 3]]
        assert part.before.tolist() == [0, 1, 2, 3, 4]
        assert part.rows_of_words.tolist() == [0, 1, 0, 1, 0, 1, 0]
        assert part.positions.tolist() == [0, 1, 3]
        assert part.sources.tolist() == [[2, 4, 3], [4, 2, 3]]

    def test_it_goes_to_a_device_whole(self):
        """Oracle: the device of every tensor; what is no tensor stays."""
        (part,) = packed([2, 1])
        there = part.to(torch.device("meta"))
        assert {each.device.type for each in vars(there).values() if isinstance(each, torch.Tensor)} == {"meta"}
        assert vars(there).keys() == vars(part).keys()
        assert there.batch_sizes == part.batch_sizes


class TestSentenceLengths:
    @settings(max_examples=50)
    @given(LENGTHS, st.integers(0, 3))
    def test_they_are_counted(self, lengths, n_padding):
        """Oracle: the lengths that the ids were made of; a word is one where any of its ids is not zero."""
        character_ids = torch.zeros(len(lengths), max(lengths) + n_padding, 50, dtype=torch.int64)
        for row, length in enumerate(lengths):
            for column in range(length):
                character_ids[row, column, (7 * row + column) % 50] = 1 + column
        assert sentence_lengths(character_ids).tolist() == lengths

    @pytest.mark.parametrize("lengths", [[2, 0], [0, 2], [0, 0]])
    def test_a_word_after_padding_is_refused(self, lengths):
        """Oracle: the message, which must state the sentence and the position."""
        character_ids = torch.zeros(2, 4, 50, dtype=torch.int64)
        for row, length in enumerate(lengths):
            character_ids[row, :length] = 1
        assert sentence_lengths(character_ids).tolist() == lengths
        character_ids[1, 3, 49] = 1
        with pytest.raises(ValueError, match=r"sentence 1 has words at positions .*3"):
            sentence_lengths(character_ids)
