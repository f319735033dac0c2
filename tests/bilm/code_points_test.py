import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.bilm.code_points import N_CODE_POINT_IDS, code_points_to_words, word_to_code_points


class TestCodePointsToWords:
    @given(st.text(max_size=12), st.integers(3, 9))
    def test_words_are_what_their_ids_were_made_of(self, word, width):
        """Oracle: the word as far as it is not cut; whatever its characters."""
        row = word_to_code_points(word, width)
        assert row.shape == (width,) and row.max() < N_CODE_POINT_IDS
        assert code_points_to_words(row[None]) == [word[: width - 2]]

    @pytest.mark.parametrize(
        "row",
        [
            [0, 0, 0, 0],  # No word.
            [300, 302, 303, 304],  # No end.
            [302, 301, 0, 0],  # No begin.
            [300, 0, 301, 0],  # Padding within the word.
            [300, N_CODE_POINT_IDS, 301, 0],
            [259, 98, 260, 261],  # Of the public scheme.
        ],
    )
    def test_other_rows_are_refused(self, row):
        """Oracle: the message, which names what makes the right ones."""
        with pytest.raises(ValueError, match="the token indexer 'elmo' with unicode_characters makes them"):
            code_points_to_words(np.array([[300, 399, 301, 0], row]))
