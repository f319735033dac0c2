import sys

import numpy as np
import pytest

from elmo_tasks.analysis import NeighborIndex, build_graph
from elmo_tasks.analysis.neighbors import exact, graph, graph_builder
from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from tests.analysis.neighbors.synthetic import synthetic_index

NEEDS_LIBRARY = pytest.mark.skipif(not exact.has_library(), reason="usearch is not installed: `pip install usearch`")


@pytest.fixture
def index(tmp_path) -> NeighborIndex:
    """600 words at random places, ten in a sentence."""
    return synthetic_index(tmp_path / "index", n_sentences=60, dim=16)


@NEEDS_LIBRARY
class TestBuildGraph:
    def test_a_search_finds_what_the_recall_says(self, index):
        """Oracle: the exact search, for other words than those by which the recall was measured."""
        built = build_graph(index, progress=False)
        again = NeighborIndex(index.folder)
        targets = np.random.default_rng(5).standard_normal((40, 16)).astype(np.float32)
        wanted, found = (again.search_many(targets, 10, approximate=each) for each in (False, True))
        hits = [
            len({tuple(each.words) for each in a} & {tuple(each.words) for each in b})
            for a, b in zip(wanted, found, strict=True)
        ]
        assert built.recall == again.graph().recall > 0.9
        assert sum(hits) / 400 == pytest.approx(built.recall, abs=0.08)
        # Of what is found the cosines are exact.
        cosines = {(tuple(each.words), each.position): each.similarity for each in wanted[0]}
        for each in found[0]:
            assert cosines.get((tuple(each.words), each.position), each.similarity) == pytest.approx(
                each.similarity, abs=1e-5
            )

    def test_the_recall_is_measured(self, index, monkeypatch):
        """Oracle: by hand: a search that finds nothing but the word itself has a recall of 0, and half of them 0.5."""

        def half(of_graph, matrix, targets, n_best):
            cosines, rows = exact.nearest_rows(matrix, targets, 11)
            return [each[:6] for each in cosines], [each[:6] for each in rows]

        monkeypatch.setattr(graph_builder, "rows_by_graph", half)
        assert build_graph(index, progress=False).recall == pytest.approx(0.5)
        monkeypatch.setattr(
            graph_builder, "rows_by_graph", lambda *given: [[row[:1] for row in each] for each in half(*given)]
        )
        assert build_graph(index, progress=False).recall == 0

    def test_the_index_stays_as_it_was(self, index):
        """Oracle: its files, which older versions read; the two files of the graph are checked by verify."""
        before = {path.name: path.read_bytes() for path in index.folder.iterdir()}
        build_graph(index, progress=False)
        after = {path.name: path.read_bytes() for path in index.folder.iterdir()}
        assert set(after) - set(before) == {"vectors.graph", "vectors.graph.json"}
        assert {name: after[name] for name in before} == before

    @pytest.mark.parametrize(
        "change", [lambda content: content[:-9], lambda content: content[:70] + b"x" + content[71:]]
    )
    def test_a_damaged_graph_is_refused_before_the_library_reads_it(self, index, monkeypatch, change):
        """Oracle: the message; the library is not asked."""
        build_graph(index, progress=False)
        path = index.folder / "vectors.graph"
        path.write_bytes(change(path.read_bytes()))
        monkeypatch.setattr(graph, "library", lambda: pytest.fail("it was read"))
        with pytest.raises(ValueError, match=r"vectors.graph is damaged or was replaced"):
            NeighborIndex(index.folder).graph()

    def test_a_graph_of_other_vectors_is_refused(self, index, tmp_path):
        """Oracle: the messages, of another index's graph, and of a record without recall."""
        build_graph(index, progress=False)
        other = synthetic_index(tmp_path / "other", n_sentences=60, dim=16, seed=9)
        for name in ("vectors.graph", "vectors.graph.json"):
            (other.folder / name).write_bytes((index.folder / name).read_bytes())
        with pytest.raises(ValueError, match=r"must be that of the vectors in index.json, but is that of others"):
            other.graph()
        record = index.folder / "vectors.graph.json"
        write_sealed(record, {**read_sealed(record), "recall": None})
        with pytest.raises(ValueError, match=r"must have the recall and the SHA-256 of vectors.graph"):
            NeighborIndex(index.folder).graph()


class TestGraph:
    def test_without_a_graph_it_is_said_how_to_build_one(self, index):
        """Oracle: the message."""
        with pytest.raises(FileNotFoundError, match=r"needs a graph, .* build it with `allennlp elmo-neighbors graph"):
            index.search(np.ones(16, np.float32), approximate=True)

    def test_without_the_library_it_is_said_what_to_install(self, index, monkeypatch):
        """Oracle: the message, in one line."""
        monkeypatch.setitem(sys.modules, "usearch.index", None)
        with pytest.raises(
            ModuleNotFoundError, match=r"^an approximate search needs usearch, .*: `pip install usearch`"
        ):
            build_graph(index, progress=False)
