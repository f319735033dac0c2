from pathlib import Path

import pytest

from elmo_tasks.data.dataset_readers.coref_reader import CorefDocument, read_documents

ONTONOTES = """\
#begin document (bc/cctv/00/cctv_0000); part 000
bc/cctv/00/cctv_0000   0   0   Ann   NNP   (TOP(S(NP*)   -   -   -   Ann_Cole   (PERSON)   (ARG0*)   (12)
bc/cctv/00/cctv_0000   0   1   sang   VBD   (VP*)   sing   01   1   Ann_Cole   *   (V*)   -
bc/cctv/00/cctv_0000   0   2   .   .   *))   -   -   -   Ann_Cole   *   *   -

bc/cctv/00/cctv_0000   0   0   Her   PRP$   (TOP(S(NP*   -   -   -   speaker#2   *   (0|(12)
bc/cctv/00/cctv_0000   0   1   old   JJ   *   -   -   -   speaker#2   *   -
bc/cctv/00/cctv_0000   0   2   song   NN   *)))   -   -   -   speaker#2   *   0)

#end document
#begin document (bc/cctv/00/cctv_0000); part 001
bc/cctv/00/cctv_0000   1   0   It   PRP   *   -   -   -   -   *   (0)
bc/cctv/00/cctv_0000   1   1   it   PRP   *   -   -   -   -   *   (0)

#end document
"""


def read(path: Path, content: str) -> list[CorefDocument]:
    path.write_text(content, encoding="utf-8")
    return list(read_documents(str(path)))


def document(*cells: str) -> str:
    """A file of one sentence in five columns, with these coreference cells."""
    lines = [f"x 0 {number} word{number} {cell}" for number, cell in enumerate(cells)]
    return "\n".join(["#begin document (x); part 000", *lines, "", "#end document\n"])


class TestReadDocuments:
    def test_ontonotes_columns_are_read_by_position(self, path):
        first, second = read(path, ONTONOTES)
        assert (first.name, first.part, second.name, second.part) == (
            *("bc/cctv/00/cctv_0000", 0),
        ) + (*("bc/cctv/00/cctv_0000", 1),)
        assert first.sentences == [["Ann", "sang", "."], ["Her", "old", "song"]]
        assert first.speakers == [["Ann_Cole"] * 3, ["speaker#2"] * 3]
        assert first.clusters == [[(0, 0), (3, 3)], [(3, 5)]]
        assert (second.sentences, second.speakers) == ([["It", "it"]], [["-", "-"]])
        assert second.clusters == [[(0, 0), (1, 1)]]

    @pytest.mark.parametrize(
        ("cells", "clusters"),
        [
            (["(0|(0", "0)", "0)"], [[(0, 1), (0, 2)]]),
            (["(0|(1", "1)", "0)"], [[(0, 1)], [(0, 2)]]),
            (["(1|(0", "1)", "0)"], [[(0, 1)], [(0, 2)]]),
            (["(0", "(0|0)", "0)"], [[(0, 2), (1, 1)]]),
            (["(0)|(0", "0)", "-"], [[(0, 0), (0, 1)]]),
            (["-", "-"], []),
        ],
    )
    def test_mentions_may_nest_and_cross(self, path, cells, clusters):
        assert read(path, document(*cells))[0].clusters == clusters

    def test_clusters_that_share_a_mention_are_merged(self, path):
        """The first and last clusters share word 2."""
        (found,) = read(path, document("(0)", "(1)", "(0)|(2)", "(1)", "(2)"))
        assert found.clusters == [[(0, 0), (2, 2), (4, 4)], [(1, 1), (3, 3)]]

    def test_the_clusters_match_allennlps_reader(self, fixtures_root):
        from allennlp_models.common.ontonotes import Ontonotes

        file = str(fixtures_root / "coref" / "train.conll")
        expected = []
        for sentences in Ontonotes().dataset_document_iterator(file):
            offset, clusters = 0, {}
            for sentence in sentences:
                for cluster, (start, end) in sentence.coref_spans:
                    clusters.setdefault(cluster, []).append((start + offset, end + offset))
                offset += len(sentence.words)
            expected.append(([s.words for s in sentences], sorted(map(sorted, clusters.values()))))
        assert len(expected) == 10
        assert [(found.sentences, found.clusters) for found in read_documents(file)] == expected

    def test_chained_clusters_are_merged_in_linear_time(self, path):
        """If every link copied the chain, 5,000 links would take seconds."""
        links = "|".join
        cells = [links((f"({n})", f"({n + 1})")) for n in range(5_000)]
        (found,) = read(path, document(*cells))
        assert found.clusters == [[(n, n) for n in range(5_000)]]
