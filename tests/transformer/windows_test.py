from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.transformer.windows import Window, windows


class TestWindows:
    def test_a_short_sentence_is_one_window(self):
        """Oracle: by hand."""
        assert windows(5, 5, 2) == [Window(0, 5, 0, 5)]

    def test_a_long_one_has_borders_in_the_middle_of_the_overlaps(self):
        """Oracle: by hand; the last window ends with the sentence, and overlaps more."""
        assert windows(11, 6, 2) == [Window(0, 6, 0, 5), Window(4, 10, 5, 7), Window(5, 11, 7, 11)]

    @given(st.integers(1, 200), st.integers(1, 50), st.data())
    def test_each_piece_comes_from_one_window_with_context(self, n_pieces, size, data):
        """Oracle: the ranges in order are all pieces; windows are full, overlap enough, and have what they give."""
        overlap = data.draw(st.integers(0, size - 1))
        found = windows(n_pieces, size, overlap)
        assert [piece for window in found for piece in range(window.first, window.last)] == list(range(n_pieces))
        for window in found:
            assert window.end - window.start == min(size, n_pieces)
            assert 0 <= window.start <= window.first < window.last <= window.end <= n_pieces
        for one, other in pairwise(found):
            assert one.end - other.start >= overlap
            # As far from the end of the one as from the begin of the other.
            assert abs((one.end - one.last) - (other.first - other.start)) <= 1
