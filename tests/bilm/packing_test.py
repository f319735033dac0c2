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
    numbers = iter(range(n_words))
    return [[n_words, *(next(numbers) for _ in range(length)), n_words + 1] for length in lengths]


class TestPack:
    @given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
    def test_each_word_has_its_place_and_its_neighbours(self, lengths):
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        words = [
            (row, step) for step in range(max(lengths)) for row in order if step < lengths[row]
        ]
        packed = {word: number for number, word in enumerate(words)}
        batch, timesteps = pack(np.array(lengths)), max(lengths) + 1
        assert batch.positions(timesteps).tolist() == [
            row * timesteps + step for row, step in words
        ]
        assert batch.rows.tolist() == order
        assert batch.sentences.tolist() == [order.index(row) for row, _ in words]
        assert batch.before.tolist() == [
            packed.get((row, step - 1), len(words)) for row, step in words
        ]
        assert batch.mirrored.tolist() == [
            packed[row, lengths[row] - 1 - step] for row, step in words
        ]
        assert batch.batch_sizes == [
            sum(length > step for length in lengths) for step in range(max(lengths))
        ]
        assert batch.n_sentences == sum(length > 0 for length in lengths)


class TestPackSentences:
    @given(LENGTHS)
    def test_each_direction_reads_each_sentence_between_its_boundaries(self, lengths):
        expected, packed = words_of(lengths), packed_with_boundaries(lengths)
        assert packed.words.shape == (2, sum(packed.batch_sizes))
        assert sorted(packed.rows.tolist()) == list(range(len(lengths)))
        for direction in (0, 1):
            sentences: list[list[int]] = [[] for _ in packed.rows]
            words = iter(packed.words[direction].tolist())
            for size in packed.batch_sizes:
                for sentence in sentences[:size]:
                    sentence.append(next(words))
            for row, sentence in zip(packed.rows.tolist(), sentences, strict=True):
                assert sentence == (expected[row] if direction == 0 else expected[row][::-1])

    @given(LENGTHS, st.integers(0, 3))
    def test_each_word_returns_to_its_position(self, lengths, n_padding):
        timesteps, packed = max(lengths) + n_padding, packed_with_boundaries(lengths, n_padding)
        expected = {
            row * timesteps + column: number
            for row, sentence in enumerate(words_of(lengths))
            for column, number in enumerate(sentence[1:-1])
        }
        for words, sources in zip(packed.words, packed.sources, strict=True):
            assert (
                dict(zip(packed.targets.tolist(), words[sources].tolist(), strict=True)) == expected
            )

    @given(LENGTHS)
    def test_before_points_to_the_word_read_before(self, lengths):
        packed = packed_with_boundaries(lengths)
        n_first = packed.n_sentences
        for direction, words in enumerate(packed.words):
            rows = packed.rows[packed.sentences[n_first:]].tolist()
            pairs = zip(
                rows, words[packed.before[n_first:]].tolist(), words[n_first:].tolist(), strict=True
            )
            expected = set()
            for row, sentence in enumerate(words_of(lengths)):
                in_order = sentence if direction == 0 else sentence[::-1]
                expected |= {(row, one, other) for one, other in pairwise(in_order)}
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
