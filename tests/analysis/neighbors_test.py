from pathlib import Path

import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.analysis import NeighborIndex, StaticVectors, build_index, marked_word
from elmo_tasks.analysis.neighbors import Query
from elmo_tasks.files.atomic_files import locked

SENTENCES = [
    *(["They", "play", "football", "on", f"day{n}"] for n in range(6)),
    ["The", "play", "opens", "tonight", "."],
    [],
    ["The", "play", "opens", "tonight", "."],
    ["She", "sat", "on", "the", "river", "bank", "."],
]
QUERY = Query(["They", "play", "tennis", "."], 1)


def best_by_numpy(elmo: Elmo, query: Query, layer: int) -> list[tuple[float, str, int]]:
    """The best word of each distinct sentence except the query's, by descending cosine."""
    target = elmo.embed([query.words], layers=layer)[0][query.position]
    found: dict[str, tuple[float, str, int]] = {}
    for sentence, vectors in zip(SENTENCES, elmo.embed(SENTENCES, layers=layer), strict=True):
        for position, vector in enumerate(vectors):
            cosine = float(vector @ target / np.linalg.norm(vector) / np.linalg.norm(target))
            text = " ".join(sentence)
            if sentence != query.words:
                found[text] = max(found.get(text, (-2.0, "", 0)), (cosine, text, position))
    return sorted(found.values(), reverse=True)


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
        (found,) = index.search([query], k=4, layer=layer)
        expected = best_by_numpy(elmo, query, number)[:4]
        np.testing.assert_allclose([each.similarity for each in found], [cosine for cosine, *_ in expected], atol=2e-3)
        assert len({" ".join(each.words) for each in found}) == 4
        assert all(each.words != query.words for each in found)

    def test_many_queries_have_the_neighbors_of_each(self, elmo, index):
        queries = [Query(sentence, position) for sentence in SENTENCES for position in range(len(sentence))]
        for query, found in zip(queries, index.search(queries, k=3), strict=True):
            expected = best_by_numpy(elmo, query, 2)[:3]
            np.testing.assert_allclose(
                [each.similarity for each in found], [cosine for cosine, *_ in expected], atol=2e-3
            )

    def test_same_word_finds_only_other_occurrences(self, elmo, index):
        (found,) = index.search([QUERY], k=20, same_word=True)
        # All seven distinct sentences with the word.
        assert len(found) == 7
        assert {each.words[each.position] for each in found} == {"play"}
        assert index.search([Query(["yak"], 0)], same_word=True) == [[]]

    def test_a_different_bilm_is_refused(self, index, index_folder):
        with pytest.raises(ValueError, match="different biLM"):
            NeighborIndex(index_folder, Elmo.from_pretrained())


class TestBuildIndex:
    def test_a_second_writer_is_refused(self, elmo, tmp_path):
        with locked(tmp_path), pytest.raises(BlockingIOError, match=tmp_path.name):
            build_index(elmo, SENTENCES, tmp_path)

    def test_an_interrupted_index_resumes_to_the_same_vectors(self, elmo, index, tmp_path):
        def broken() -> object:
            yield from SENTENCES[:7]
            raise KeyboardInterrupt

        folder = tmp_path / "index"
        with pytest.raises(KeyboardInterrupt):
            build_index(elmo, broken(), folder, layers=(0, 1, "top"))
        # What a killed process leaves behind: half a line, and vectors without a sentence.
        for file in folder.glob("*.bin"):
            with open(file, "ab") as vectors:
                vectors.write(bytes(40))
        with open(folder / "sentences.txt", "a") as sentences:
            sentences.write("She sat")
        again = build_index(elmo, SENTENCES, folder, layers=(0, 1, "top"))
        assert len(again) == len(index) == sum(map(len, SENTENCES))
        for layer in index.layers:
            np.testing.assert_allclose(again.vectors[layer], index.vectors[layer], atol=1e-3)

    def test_a_changed_setting_is_refused(self, elmo, tmp_path):
        with pytest.raises(TypeError):
            build_index(elmo, [["a"], 1], tmp_path / "index")  # type: ignore[list-item]
        with pytest.raises(ValueError, match="different biLM, text or layer"):
            build_index(elmo, SENTENCES, tmp_path / "index", layers=(0,))
        with pytest.raises(FileNotFoundError, match="index"):
            NeighborIndex(tmp_path / "index", elmo)


def test_a_word_is_marked_by_brackets():
    assert marked_word("They went to the [river] .") == Query(["They", "went", "to", "the", "river", "."], 4)
    for text in ("no word", "[two] [words]"):
        with pytest.raises(ValueError, match="one word in brackets"):
            marked_word(text)


def test_static_neighbors_have_the_highest_cosines(tmp_path: Path):
    (tmp_path / "glove.txt").write_text("play 1 0\ngame 2 0.5\nbank 0 3\n. . . -1 1\n")
    vectors = StaticVectors(tmp_path / "glove.txt")
    found = vectors.nearest("Play", 2)
    assert [word for word, _ in found] == ["game", "bank"]
    assert found[0][1] == pytest.approx(2 / np.hypot(2, 0.5))
    assert vectors.nearest("river") == []
    (tmp_path / "bad.txt").write_text("play 1 0\ngame 2 x\n")
    with pytest.raises(ValueError, match=r"bad\.txt, line 2"):
        StaticVectors(tmp_path / "bad.txt")
