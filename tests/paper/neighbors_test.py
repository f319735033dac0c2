import filecmp
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.files.atomic_files import locked
from elmo_tasks.paper.neighbors import Neighbor, NeighborIndex, Query, build_index, marked_word
from elmo_tasks.paper.static_vectors import StaticVectors

SENTENCES = [
    *(["They", "play", "football", "on", f"day{number}"] for number in range(6)),
    ["The", "play", "opens", "tonight", "."],
    [],
    ["The", "play", "opens", "tonight", "."],
    ["She", "sat", "on", "the", "river", "bank", "."],
]
QUERY = Query(["They", "play", "tennis", "."], 1)


def best_by_numpy(elmo: Elmo, query: Query, layer: int) -> list[tuple[float, str, int]]:
    """The best word of each distinct sentence except the query's, by descending cosine."""
    target = elmo.embed([query.words], layers=layer)[0][query.position]
    best: dict[str, tuple[float, str, int]] = {}
    for sentence, vectors in zip(SENTENCES, elmo.embed(SENTENCES, layers=layer), strict=True):
        if sentence == query.words:
            continue
        text = " ".join(sentence)
        for position, vector in enumerate(vectors):
            cosine = float(vector @ target / np.linalg.norm(vector) / np.linalg.norm(target))
            best[text] = max(best.get(text, (-2.0, "", 0)), (cosine, text, position))
    return sorted(best.values(), reverse=True)


def assert_equal_cosines(neighbors: list[Neighbor], expected: list[tuple[float, str, int]]) -> None:
    cosines = [neighbor.similarity for neighbor in neighbors]
    expected_cosines = [cosine for cosine, _, _ in expected]
    np.testing.assert_allclose(cosines, expected_cosines, atol=2e-3)


@pytest.fixture(scope="module")
def index_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index") / "new"


@pytest.fixture(scope="module")
def index(elmo: Elmo, index_folder: Path) -> NeighborIndex:
    return build_index(elmo, SENTENCES, index_folder, layers=(0, 1, "top"))


class TestSearch:
    @pytest.mark.parametrize(("layer", "number"), [(0, 0), (1, 1), ("top", 2), (None, 2)])
    @pytest.mark.parametrize("query", [QUERY, Query(SENTENCES[0], 1)])
    def test_the_neighbors_have_the_highest_cosines(self, elmo, index, layer, number, query):
        (neighbors,) = index.search([query], k=4, layer=layer)
        assert_equal_cosines(neighbors, best_by_numpy(elmo, query, number)[:4])
        assert len({" ".join(neighbor.words) for neighbor in neighbors}) == 4
        assert all(neighbor.words != query.words for neighbor in neighbors)

    def test_many_queries_have_the_neighbors_of_each(self, elmo, index):
        queries = []
        for sentence in SENTENCES:
            queries += [Query(sentence, position) for position in range(len(sentence))]
        for query, neighbors in zip(queries, index.search(queries, k=3), strict=True):
            assert_equal_cosines(neighbors, best_by_numpy(elmo, query, 2)[:3])

    def test_same_word_finds_only_other_occurrences(self, elmo, index):
        (neighbors,) = index.search([QUERY], k=20, same_word=True)
        # All seven distinct sentences with the word.
        assert len(neighbors) == 7
        assert {neighbor.words[neighbor.position] for neighbor in neighbors} == {"play"}
        assert index.search([Query(["yak"], 0)], same_word=True) == [[]]

    def test_a_different_bilm_is_refused(self, index, index_folder):
        with pytest.raises(ValueError, match="different biLM"):
            NeighborIndex(index_folder, Elmo.from_pretrained())


class TestBuildIndex:
    OPTIONS: ClassVar = {"layers": (0, 1, "top"), "part_sentences": 3}

    @pytest.fixture
    def interrupted(self, elmo, tmp_path, monkeypatch) -> Path:
        """The folder of an index that was interrupted in its third part."""
        parts = []

        def embed(sentences, **options):
            if len(parts) == 2:
                raise KeyboardInterrupt
            parts.append(sentences)
            return Elmo.embed(elmo, sentences, **options)

        with monkeypatch.context() as patch:
            patch.setattr(elmo, "embed", embed)
            with pytest.raises(KeyboardInterrupt, match="the same command continues"):
                build_index(elmo, SENTENCES, tmp_path / "index", **self.OPTIONS)
        return tmp_path / "index"

    def test_an_interrupted_index_resumes_to_the_same_bytes(
        self, elmo, interrupted, tmp_path, monkeypatch
    ):
        assert not interrupted.exists()
        embedded = []

        def embed(sentences, **options):
            embedded.extend(sentences)
            return Elmo.embed(elmo, sentences, **options)

        with monkeypatch.context() as patch:
            patch.setattr(elmo, "embed", embed)
            again = build_index(elmo, SENTENCES, interrupted, **self.OPTIONS)
        with_words = [sentence for sentence in SENTENCES if sentence]
        assert embedded == with_words[6:]
        build_index(elmo, SENTENCES, tmp_path / "whole", **self.OPTIONS)
        files = sorted(file.name for file in interrupted.iterdir())
        assert files == [
            "index.json",
            "sentences.txt",
            "vectors-0.bin",
            "vectors-1.bin",
            "vectors-top.bin",
        ]
        assert filecmp.cmpfiles(interrupted, tmp_path / "whole", files, shallow=False)[0] == files
        assert len(again) == sum(map(len, SENTENCES))

    def test_another_text_another_layer_and_a_second_writer_are_refused(self, elmo, interrupted):
        for changed in ({"sentences": SENTENCES[1:]}, {"layers": (0,)}):
            with pytest.raises(ValueError, match="a different job"):
                build_index(
                    elmo,
                    **{"sentences": SENTENCES, "folder": interrupted, **self.OPTIONS, **changed},
                )
        with locked(interrupted), pytest.raises(BlockingIOError, match="index"):
            build_index(elmo, SENTENCES, interrupted, **self.OPTIONS)
        with pytest.raises(FileNotFoundError, match="index"):
            NeighborIndex(interrupted, elmo)


def test_a_word_is_marked_by_brackets():
    assert marked_word("They went to the [river] .") == Query(
        ["They", "went", "to", "the", "river", "."], 4
    )
    for text in ("no word", "[two] [words]"):
        with pytest.raises(ValueError, match="one word in brackets"):
            marked_word(text)


def test_static_neighbors_have_the_highest_cosines(tmp_path: Path):
    (tmp_path / "glove.txt").write_text("play 1 0\ngame 2 0.5\nbank 0 3\n. . . -1 1\n")
    vectors = StaticVectors(tmp_path / "glove.txt")
    neighbors = vectors.nearest("Play", 2)
    assert [word for word, _ in neighbors] == ["game", "bank"]
    assert neighbors[0][1] == pytest.approx(2 / np.hypot(2, 0.5))
    assert vectors.nearest("river") == []
    (tmp_path / "bad.txt").write_text("play 1 0\ngame 2 x\n")
    with pytest.raises(ValueError, match=r"bad\.txt, line 2"):
        StaticVectors(tmp_path / "bad.txt")
