"""Tests of queries for neighbours."""

import json
import shutil
import unicodedata

import numpy as np
import pytest

from elmo_tasks.analysis.neighbors.query import (
    NeighborFinder,
    Query,
    find_neighbors,
    marked_word,
    position_of,
)
from elmo_tasks.analysis.neighbors.text_index import index_text
from elmo_tasks.files.sealed_json import read_sealed, write_sealed
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


class TestNeighborFinder:
    def test_queries_are_answered_together_as_one_by_one(self, index):
        """Oracle: `find_neighbors` for each; no queries have no answers."""
        finder = NeighborFinder(index)
        queries = [Query(QUERY, 1), Query(["Yes", "!"], 0), Query(QUERY, 2)]
        for query, found in zip(queries, finder.find(queries, 2), strict=True):
            one = find_neighbors(index, query.words, query.position, k=2)
            assert [each[:2] for each in found.neighbors] == [each[:2] for each in one.neighbors]
            assert (found.words, found.position, found.layer, found.recall) == (*query, 1, None)
        assert finder.find([]) == []

    def test_settings_are_checked_before_a_query(self, index):
        """Oracle: the messages."""
        finder = NeighborFinder(index)
        for given, message in (
            ({"k": 0}, "at least 1"),
            ({"layer": 0}, "built with"),
            ({"where": {"pos": "X"}}, "tags"),
        ):
            with pytest.raises(ValueError, match=message):
                finder.check(**{"k": 1, "layer": None, **given})

    def test_a_search_with_a_filter_needs_no_graph(self, tmp_path):
        """Oracle: such a search is exact; without a filter it needs the graph, which is not there."""
        (tmp_path / "a.conllu").write_text("1\tNo\tno\tINTJ" + "\t_" * 6 + "\n\n")
        index_text(str(tmp_path / "a.conllu"), tmp_path / "index", str(TINY_BILM), layer=0)
        finder = NeighborFinder(tmp_path / "index")
        finder.check(k=1, layer=None, where={"pos": "INTJ"}, approximate=True)
        (found,) = finder.find([Query(["Yes"], 0)], 1, where={"pos": "INTJ"}, approximate=True)
        assert found.neighbors[0].words == ["No"]
        with pytest.raises((FileNotFoundError, ModuleNotFoundError)):
            finder.check(k=1, layer=None, approximate=True)

    def test_a_query_may_come_from_another_folder(self, tmp_path, monkeypatch):
        """Oracle: the biLM of an index is found from elsewhere, and named by the message if it has gone."""
        shutil.copytree(TINY_BILM, tmp_path / "bilm")
        (tmp_path / "text.txt").write_text("They play .\n")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path)
        index_text("text.txt", tmp_path / "index", "bilm", layer=0)
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert NeighborFinder(tmp_path / "index").index.n_sentences == 1
        (tmp_path / "bilm").rename(tmp_path / "moved")
        with pytest.raises(ValueError, match=r"biLM in '.*/bilm', but there is no such folder: name it with --bilm"):
            NeighborFinder(tmp_path / "index")
        assert NeighborFinder(tmp_path / "index", bilm="../moved").index.n_sentences == 1

    @pytest.mark.parametrize("name", ["original", "efml-ko"])
    def test_no_index_begins_a_download(self, index, name, monkeypatch, tmp_path):
        """Oracle: the message, for both servers."""
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        about = read_sealed(index / "index.json")
        write_sealed(index / "index.json", {**about, "bilm": name})
        with pytest.raises(ValueError, match=f"must not begin a download: add --bilm {name}"):
            NeighborFinder(index)

    def test_a_bilm_whose_options_have_changed_is_refused(self, tmp_path):
        """Oracle: the message."""
        shutil.copytree(TINY_BILM, tmp_path / "bilm")
        (tmp_path / "text.txt").write_text("They play .\n")
        index_text(str(tmp_path / "text.txt"), tmp_path / "index", str(tmp_path / "bilm"))
        assert NeighborFinder(tmp_path / "index").index.n_sentences == 1
        options = json.loads((tmp_path / "bilm" / "options.json").read_text())
        options["lstm"]["cell_clip"] = 0.01
        (tmp_path / "bilm" / "options.json").write_text(json.dumps(options))
        with pytest.raises(ValueError, match=r"must have the biLM of its index, but .* other weights or options now"):
            NeighborFinder(tmp_path / "index")

    @pytest.mark.parametrize("nfc", [True, False])
    def test_text_and_query_are_in_one_unicode_form(self, tmp_path, nfc):
        """Oracle: by hand: the same words in the other form have the cosine 1, or not if the text was left as it is."""
        words = {form: unicodedata.normalize(form, "Ein café là").split() for form in ("NFC", "NFD")}
        (tmp_path / "a.txt").write_text(f"{' '.join(words['NFD'])}\n", encoding="utf-8")
        rows = [f"{number}\t{word}\t{word}" + "\t_" * 7 for number, word in enumerate(words["NFD"], start=1)]
        (tmp_path / "b.conllu").write_text("\n".join(rows) + "\n\n", encoding="utf-8")
        for name in ("a.txt", "b.conllu"):
            index_text(
                str(tmp_path / name), tmp_path / f"{name}-index", str(TINY_BILM), layer=0, dtype="float32", nfc=nfc
            )
            finder = NeighborFinder(tmp_path / f"{name}-index")
            assert finder.index.sentence(0) == words["NFC" if nfc else "NFD"]
            (query,) = finder.find([Query([*words["NFD"], "."], 1)], 1)
            assert query.neighbors[0].similarity == pytest.approx(1.0, abs=1e-5)
            (query,) = finder.find([Query([*words["NFC"], "."], 1)], 1)
            assert (query.neighbors[0].similarity > 0.9999) == nfc
        # Of the CoNLL-U, whose lemmas are its words.
        assert list(finder.index.rows_with({"lemma": words["NFD"][1]})) == [1]


class TestMarkedWord:
    def test_the_word_is_in_brackets(self):
        """Oracle: by hand; a word alone needs none."""
        assert marked_word("They [play] chess .") == Query(["They", "play", "chess", "."], 1)
        assert marked_word("[don't] go") == Query(["don't", "go"], 0)
        assert marked_word(" river ") == Query(["river"], 0)
        assert marked_word("ab[c]de", list) == Query(["a", "b", "c", "d", "e"], 2)

    def test_a_sentence_may_have_brackets_itself(self):
        """Oracle: by hand: those with white space within them are words."""
        assert marked_word("an [ sic ] [bank] [ ... ]") == Query(["an", "[", "sic", "]", "bank", "[", "...", "]"], 4)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("They play", "one word in brackets, .* but 'They play' has 0"),
            ("[a] [b]", "has 2: write one of them without white space"),
            ("[ a ] [ b ]", "has 2: write one"),
            ("[two words] here", "between the brackets must be one word, but there is 'two words'"),
            ("[] here", "but there is ''"),
        ],
    )
    def test_other_brackets_are_errors(self, text, message):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=message):
            marked_word(text)


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
