import numpy as np
import pytest

from elmo_tasks.analysis import Neighbor, NeighborIndex, build_index, neighbor_index
from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM

SENTENCES = [
    ["They", "play", "on", "Saturday", "."],
    ["The", "play", "was", "long", "."],
    ["We", "sat", "on", "the", "bank", "."],
    ["They", "play", "on", "Saturday", "."],
    ["Yes", "!"],
    ["The", "café", "opens", "at", "six", "."],
]


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.from_pretrained(TINY_BILM, device="cpu")


@pytest.fixture(scope="module")
def index(elmo: Elmo, tmp_path_factory: pytest.TempPathFactory) -> NeighborIndex:
    return build_index(elmo, SENTENCES, tmp_path_factory.mktemp("index") / "index", dtype="float32", progress=False)


def expected(elmo: Elmo, target: np.ndarray, k: int, without: list[str] | None) -> list[tuple[list[str], int, float]]:
    """All words sorted by their cosines, in float64; then the first of each sentence."""
    cosines = []
    for words in SENTENCES:
        (vectors,) = elmo.embed([words], layers="top")
        for position, vector in enumerate(vectors.astype(float)):
            cosine = float(vector @ target / np.linalg.norm(vector) / np.linalg.norm(target))
            cosines.append((words, position, cosine))
    found: list[tuple[list[str], int, float]] = []
    for words, position, cosine in sorted(cosines, key=lambda item: -item[2]):
        if words != without and words not in [other for other, _, _ in found]:
            found.append((words, position, cosine))
    return found[:k]


class TestNeighborIndex:
    @pytest.mark.parametrize("block", [3, 65536])
    @pytest.mark.parametrize(("k", "without"), [(1, None), (3, None), (3, SENTENCES[0]), (10, SENTENCES[0])])
    def test_the_nearest_words_are_found(self, elmo, index, monkeypatch, block, k, without):
        """Oracle: all cosines in float64, sorted: one word a sentence, the same sentence once, not the query's."""
        monkeypatch.setattr(neighbor_index, "_BLOCK", block)
        (vectors,) = elmo.embed([SENTENCES[0]], layers="top")
        found = index.search(vectors[1], k, without=without)
        wanted = expected(elmo, vectors[1].astype(float), k, without)
        assert [(neighbor.words, neighbor.position) for neighbor in found] == [item[:2] for item in wanted]
        assert [neighbor.similarity for neighbor in found] == pytest.approx([item[2] for item in wanted], abs=1e-5)
        assert len(found) == min(k, 5 if without is None else 4)

    def test_a_long_sentence_of_near_words_does_not_hide_the_others(self, elmo, tmp_path):
        """Oracle: by hand: 60 words of one sentence are nearer than the second's, more than are read at first."""
        sentences = [["play"] * 60, ["zzz", "qqq"]]
        index = build_index(elmo, sentences, tmp_path / "index", layer=0, dtype="float32", progress=False)
        (vectors,) = elmo.embed([["play"]], layers=0)
        assert [neighbor.words for neighbor in index.search(vectors[0], 2)] == sentences

    def test_sizes_and_sentences_are_those_of_the_text(self, index):
        """Oracle: by hand: 4 bytes for each of 16 numbers of 29 words, next to the text."""
        assert (len(index), index.n_sentences) == (29, 6)
        assert [index.sentence(number) for number in range(6)] == SENTENCES
        assert 29 * 16 * 4 < index.n_bytes < 29 * 16 * 4 + 1000
        assert (index.about["layer"], index.about["dim"]) == ("top", 16)

    def test_wrong_arguments_are_errors(self, index):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=r"the vector must have the shape \(16,\), .* but has \(3,\)"):
            index.search(np.ones(3, np.float32))
        with pytest.raises(ValueError, match=r"k must be at least 1, but is 0"):
            index.search(np.ones(16, np.float32), 0)

    def test_what_is_no_index_is_an_error(self, elmo, tmp_path):
        """Oracle: the messages: nothing there, a half-built one, a file too few, a file too short."""
        folder = tmp_path / "index"
        with pytest.raises(FileNotFoundError, match=r"there must be an index in .*, but there is none"):
            NeighborIndex(folder)
        (tmp_path / "index.part").mkdir()
        with pytest.raises(FileNotFoundError, match=r"but there is a half-built one, '.*index\.part': the command"):
            NeighborIndex(folder)
        build_index(elmo, SENTENCES, folder, progress=False)
        with open(folder / "vectors.bin", "r+b") as file:
            file.truncate(100)
        with pytest.raises(ValueError, match=r"must have 29 vectors of 16 numbers, but has 100 bytes"):
            NeighborIndex(folder)
        (folder / "lines.npy").unlink()
        with pytest.raises(FileNotFoundError, match=r"must have the file lines.npy"):
            NeighborIndex(folder)

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("index.json", b"["),
            ("index.json", b"[]"),
            ("index.json", b"{}"),
            ("starts.npy", b""),
            ("lines.npy", b"x"),
            ("sentences.txt", b"x"),
        ],
    )
    def test_a_damaged_file_is_an_error(self, elmo, tmp_path, name, content):
        """Oracle: the message."""
        folder = tmp_path / "index"
        build_index(elmo, SENTENCES, folder, progress=False)
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=r"the index '.*index' must be as they were made, but one is damaged"):
            NeighborIndex(folder)

    def test_a_neighbor_has_names(self):
        """Oracle: by hand."""
        assert Neighbor(["a"], 0, 0.5)._asdict() == {"words": ["a"], "position": 0, "similarity": 0.5}
