"""Tests of queries for neighbours."""

import json

import numpy as np
import pytest

from elmo_tasks.analysis.neighbors.query import find_neighbors, index_text, position_of
from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM

SENTENCES = [["They", "play", "."], ["The", "play", "opens", "."], ["She", "sang", "a", "song", "."]]
QUERY = ["We", "play", "chess", "."]


@pytest.fixture
def index(tmp_path):
    (tmp_path / "text.txt").write_text("".join(" ".join(words) + "\n" for words in SENTENCES))
    index_text(str(tmp_path / "text.txt"), tmp_path / "index", str(TINY_BILM), layer=1, dtype="float32")
    return tmp_path / "index"


class TestFindNeighbors:
    def test_the_nearest_words_are_those_of_the_largest_cosine(self, index, tmp_path):
        """Oracle: all cosines of the layer's vectors in NumPy; the file has what was found."""
        found = find_neighbors(index, QUERY, 1, k=12)
        elmo = Elmo.from_pretrained(TINY_BILM)
        query = elmo.embed([QUERY], layers=1, progress=False)[0][1]
        expected = {}
        for words in SENTENCES:
            for place, vector in enumerate(elmo.embed([words], layers=1, progress=False)[0]):
                cosine = query @ vector / np.linalg.norm(query) / np.linalg.norm(vector)
                expected[tuple(words), place] = float(cosine)
        given = {(tuple(each.words), each.position): each.similarity for each in found.neighbors}
        assert len(given) >= 3 and (found.layer, found.static_neighbors) == (1, None)
        for key, cosine in given.items():
            assert cosine == pytest.approx(expected[key], abs=1e-5)
        assert list(given.values()) == sorted(given.values(), reverse=True)
        assert max(given.values()) == pytest.approx(max(expected.values()), abs=1e-5)
        found.write(tmp_path / "found.json")
        written = json.loads((tmp_path / "found.json").read_text())
        assert written["words"] == QUERY and written["neighbors"][0]["words"] == found.neighbors[0].words


class TestPositionOf:
    @pytest.mark.parametrize(("word", "position", "expected"), [("b", None, 1), ("a", 2, 2), ("a", 0, 0)])
    def test_it_is_where_the_word_is(self, word, position, expected):
        """Oracle: by hand."""
        assert position_of(word, ["a", "b", "a"], position) == expected

    @pytest.mark.parametrize(
        ("word", "position", "message"),
        [
            ("a", None, r"is 2 times: choose one with --position: 0:a 1:b 2:a"),
            ("c", None, r"is 0 times: name one of them with --word"),
            ("a", 1, r"must be a place of 'a', but is 1"),
            ("a", -1, r"must be a place of 'a', but is -1"),
        ],
    )
    def test_other_places_are_errors(self, word, position, message):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=message):
            position_of(word, ["a", "b", "a"], position)
