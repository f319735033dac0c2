from itertools import pairwise

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.packing import PackedSentences, mask_of, pack, pack_sentences

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=9)


def packed_with_boundaries(lengths: list[int], n_padding: int = 0) -> PackedSentences:
    return pack_sentences(np.arange(max(lengths) + n_padding) < np.array(lengths)[:, None])


def words_of(lengths: list[int]) -> list[list[int]]:
    """The word numbers of each sentence, between its two boundaries."""
    n_words = sum(lengths)
    begin = n_words
    end = n_words + 1
    sentences = []
    n_before = 0
    for length in lengths:
        numbers = range(n_before, n_before + length)
        sentences.append([begin, *numbers, end])
        n_before += length
    return sentences


class TestPack:
    @given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    def test_each_word_has_its_place_and_its_neighbours(self, lengths):
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        words = []
        batch_sizes = []
        for step in range(max(lengths)):
            rows_of_step = [row for row in order if lengths[row] > step]
            batch_sizes.append(len(rows_of_step))
            words += [(row, step) for row in rows_of_step]
        packed = {word: number for number, word in enumerate(words)}

        batch = pack(np.array(lengths))
        assert batch.batch_sizes == batch_sizes
        assert batch.n_sentences == sum(length > 0 for length in lengths)
        assert batch.rows.tolist() == order
        timesteps = max(lengths) + 1
        positions = batch.positions(timesteps)
        for number, (row, step) in enumerate(words):
            assert positions[number] == row * timesteps + step
            assert batch.sentences[number] == order.index(row)
            assert batch.before[number] == packed.get((row, step - 1), len(words))
            assert batch.mirrored[number] == packed[row, lengths[row] - 1 - step]
        for tensor in (positions, batch.sentences, batch.before, batch.mirrored):
            assert tensor.shape == (len(words),)


class TestPackSentences:
    @given(LENGTHS)
    def test_each_direction_reads_each_sentence_between_its_boundaries(self, lengths):
        expected = words_of(lengths)
        packed = packed_with_boundaries(lengths)
        assert packed.words.shape == (2, sum(packed.batch_sizes))
        assert sorted(packed.rows.tolist()) == list(range(len(lengths)))
        for direction in (0, 1):
            sentences: list[list[int]] = [[] for _ in packed.rows]
            words = iter(packed.words[direction].tolist())
            for size in packed.batch_sizes:
                for sentence in sentences[:size]:
                    sentence.append(next(words))
            for row, sentence in zip(packed.rows.tolist(), sentences, strict=True):
                if direction == 1:
                    sentence.reverse()
                assert sentence == expected[row]

    @given(LENGTHS, st.integers(0, 3))
    def test_each_word_returns_to_its_position(self, lengths, n_padding):
        timesteps = max(lengths) + n_padding
        packed = packed_with_boundaries(lengths, n_padding)
        word_at = {}
        for row, sentence in enumerate(words_of(lengths)):
            for column, word in enumerate(sentence[1:-1]):
                word_at[row * timesteps + column] = word
        targets = packed.targets.tolist()
        for words, sources in zip(packed.words, packed.sources, strict=True):
            assert dict(zip(targets, words[sources].tolist(), strict=True)) == word_at

    @given(LENGTHS)
    def test_before_points_to_the_word_read_before(self, lengths):
        packed = packed_with_boundaries(lengths)
        # The words of the first step have no word before.
        later = slice(packed.n_sentences, None)
        rows = packed.rows[packed.sentences[later]].tolist()
        for direction, words in enumerate(packed.words):
            before = words[packed.before[later]].tolist()
            pairs = zip(rows, before, words[later].tolist(), strict=True)
            expected = []
            for row, sentence in enumerate(words_of(lengths)):
                if direction == 1:
                    sentence.reverse()
                expected += [(row, previous, word) for previous, word in pairwise(sentence)]
            assert sorted(pairs) == sorted(expected)

    def test_two_sentences(self):
        """
        `a b` and `c`, numbered 0, 1 and 2, padded to three columns; 3 and 4 are begin and end.
        """
        packed = packed_with_boundaries([2, 1], n_padding=1)
        assert packed.batch_sizes == [2, 2, 2, 1]
        assert packed.words.tolist() == [[3, 3, 0, 2, 1, 4, 4], [4, 4, 1, 2, 0, 3, 3]]
        assert packed.before.tolist() == [7, 7, 0, 1, 2, 3, 4]
        assert packed.sentences.tolist() == [0, 1, 0, 1, 0, 1, 0]
        assert packed.targets.tolist() == [0, 3, 1]
        assert packed.sources.tolist() == [[2, 3, 4], [4, 3, 2]]
        assert packed_with_boundaries([2, 3, 2, 0, 3, 2]).rows.tolist() == [1, 4, 0, 2, 5, 3]


class TestMaskOf:
    @given(LENGTHS, st.integers(0, 3))
    def test_it_is_true_for_words(self, lengths, n_padding):
        character_ids = torch.zeros(len(lengths), max(lengths) + n_padding, 50, dtype=torch.int64)
        for row, length in enumerate(lengths):
            for column in range(length):
                character_ids[row, column, (7 * row + column) % 50] = 1 + column
        assert mask_of(character_ids, BYTES).sum(-1).tolist() == lengths
