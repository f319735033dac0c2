"""Tests of the index of a text."""

import pytest

from elmo_tasks.analysis import NeighborIndex
from elmo_tasks.analysis.neighbors.text_index import index_text
from tests.paths import TINY_BILM


class TestIndexText:
    def test_conllu_is_indexed_with_its_tags(self, tmp_path):
        """Oracle: by hand; white space in a form or lemma is an underscore, a multiword token is its words."""
        rows = ["1\tNew York\tNew York\tPROPN", "2-3\tdon't\t_\t_", "2\tdo\tdo\tAUX", "3\tn't\tnot\tPART"]
        text = "".join(row + "\t_" * 6 + "\n" for row in rows) + "\n"
        (tmp_path / "a.conllu").write_text(text)
        index_text(str(tmp_path), tmp_path / "index", str(TINY_BILM))
        found = {name: (tmp_path / "index" / f"{name}.txt").read_text() for name in ("sentences", "lemma", "pos")}
        assert found == {"sentences": "New_York do n't\n", "lemma": "New_York do not\n", "pos": "PROPN AUX PART\n"}
        # A filter may be written as the text is.
        assert list(NeighborIndex(tmp_path / "index").rows_with({"lemma": "New York"})) == [0]
        (tmp_path / "b.txt").write_text("A text .\n")
        with pytest.raises(ValueError, match=r"must all be CoNLL-U, or none, but in .*b.txt.* and .*a.conllu"):
            index_text(f"{tmp_path}/*.*", tmp_path / "other", str(TINY_BILM))

    def test_conllu_under_another_name_is_refused(self, tmp_path):
        """Oracle: the message; the ending in capitals; a sentence of ten words that begins with a number is text."""
        rows = "".join(f"{number}\tw\tw\tNOUN" + "\t_" * 6 + "\n" for number in (1, 2))
        (tmp_path / "a.conll").write_text(f"# text = w w\n{rows}\n")
        with pytest.raises(ValueError, match=r"a\.conll, line 2: .* looks like CoNLL-U: give"):
            index_text(str(tmp_path / "a.conll"), tmp_path / "index", str(TINY_BILM), layer=0)
        (tmp_path / "a.conll").rename(tmp_path / "A.CONLLU")
        assert index_text(str(tmp_path / "A.CONLLU"), tmp_path / "tagged", str(TINY_BILM), layer=0).tags
        (tmp_path / "a.txt").write_text("1 2 3 4 5 6 7 8 9 10\n2 2 3 4 5 6 7 8 9 10\nNo .\n")
        assert index_text(str(tmp_path / "a.txt"), tmp_path / "text", str(TINY_BILM), layer=0).n_sentences == 3
