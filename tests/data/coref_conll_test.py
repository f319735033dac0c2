from collections import defaultdict
from pathlib import Path

import pytest

from elmo_tasks.data.dataset_readers.coref_reader import CorefDocument, Mention, read_documents

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


def clusters_in(path: Path, *cells: str) -> list[list[Mention]] | None:
    """Of a file of one sentence in five columns, with these coreference cells."""
    lines = ["#begin document (x); part 000"]
    for number, cell in enumerate(cells):
        lines.append(f"x 0 {number} word{number} {cell}")
    lines += ["", "#end document\n"]
    (document,) = read(path, "\n".join(lines))
    return document.clusters


class TestReadDocuments:
    def test_ontonotes_columns_are_read_by_position(self, path):
        name = "bc/cctv/00/cctv_0000"
        assert read(path, ONTONOTES) == [
            CorefDocument(
                name=name,
                part=0,
                sentences=[["Ann", "sang", "."], ["Her", "old", "song"]],
                speakers=[["Ann_Cole"] * 3, ["speaker#2"] * 3],
                clusters=[[(0, 0), (3, 3)], [(3, 5)]],
            ),
            CorefDocument(
                name=name,
                part=1,
                sentences=[["It", "it"]],
                speakers=[["-", "-"]],
                clusters=[[(0, 0), (1, 1)]],
            ),
        ]

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
        assert clusters_in(path, *cells) == clusters

    def test_clusters_that_share_a_mention_are_merged(self, path):
        """The first and last clusters share word 2."""
        clusters = clusters_in(path, "(0)", "(1)", "(0)|(2)", "(1)", "(2)")
        assert clusters == [[(0, 0), (2, 2), (4, 4)], [(1, 1), (3, 3)]]

    def test_the_clusters_match_allennlps_reader(self, fixtures_root):
        from allennlp_models.common.ontonotes import Ontonotes

        file = str(fixtures_root / "coref" / "train.conll")
        documents = list(read_documents(file))
        assert len(documents) == 10
        allennlp_documents = Ontonotes().dataset_document_iterator(file)
        for document, sentences in zip(documents, allennlp_documents, strict=True):
            assert document.sentences == [sentence.words for sentence in sentences]
            clusters = defaultdict(list)
            n_before = 0
            for sentence in sentences:
                for cluster, (start, end) in sentence.coref_spans:
                    clusters[cluster].append((n_before + start, n_before + end))
                n_before += len(sentence.words)
            assert document.clusters == sorted(map(sorted, clusters.values()))

    def test_chained_clusters_are_merged_in_linear_time(self, path):
        """If every link copied the chain, 5,000 links would take seconds."""
        cells = [f"({number})|({number + 1})" for number in range(5_000)]
        assert clusters_in(path, *cells) == [[(word, word) for word in range(5_000)]]
