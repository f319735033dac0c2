from pathlib import Path

import numpy as np
import pytest

from elmo_tasks.analysis import NeighborIndex, build_index, occurrences_of
from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM

SENTENCES = [
    line.split() for line in ("They play on .", "a replay", "Play the play !", "눈 play눈 눈", "PLAY", "play-off")
]


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.from_pretrained(TINY_BILM)


@pytest.fixture
def index(elmo: Elmo, tmp_path: Path) -> NeighborIndex:
    return build_index(elmo, SENTENCES, tmp_path / "index", layer=1, dtype="float32", progress=False)


class TestOccurrencesOf:
    def test_all_spellings_are_found_with_their_vectors(self, index, elmo):
        """Oracle: the places by hand; `Elmo.embed`, of length 1."""
        found, vectors, n_all = occurrences_of(index, "play", 10)
        places = [(0, 1), (2, 0), (2, 2), (4, 0)]
        assert found == [(SENTENCES[number], place) for number, place in places]
        assert n_all == 4
        layers = elmo.embed(SENTENCES, layers=1, progress=False)
        expected = np.stack([layers[number][place] for number, place in places])
        np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)

    def test_places_are_those_of_words_and_not_of_bytes(self, index):
        """Oracle: by hand, for a word of three bytes."""
        assert [place for _, place in occurrences_of(index, "눈", 10).found] == [0, 2]

    def test_a_part_of_a_word_and_a_pattern_are_not_found(self, index):
        """Oracle: by hand; `.` is a word of the first sentence, and no pattern."""
        assert occurrences_of(index, "pla", 10).n_all == 0
        assert occurrences_of(index, "pla", 10).vectors.shape == (0, index.about["dim"])
        assert occurrences_of(index, ".", 10).n_all == 1
        with pytest.raises(ValueError, match="without white space"):
            occurrences_of(index, "the play", 10)

    def test_no_more_are_read_than_were_asked_for(self, index):
        """Oracle: by hand: every second of four."""
        found, vectors, n_all = occurrences_of(index, "play", 2)
        assert [(words[0], place) for words, place in found] == [("They", 1), ("Play", 2)]
        assert len(vectors) == 2 and n_all == 4
