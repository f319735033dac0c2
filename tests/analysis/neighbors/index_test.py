import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks.analysis import Neighbor, NeighborIndex, TaggedSentence, build_index
from elmo_tasks.analysis.neighbors import exact
from elmo_tasks.data import LmText
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import read_sealed, write_sealed
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


@pytest.fixture
def copied(index: NeighborIndex, tmp_path: Path) -> Path:
    """A copy of the index that may be changed."""
    return Path(shutil.copytree(index.folder, tmp_path / "index"))


def rewrite(folder: Path, **entries: Any) -> None:
    """Writes an index.json with the checksums of the files that are there now."""
    about = read_sealed(folder / "index.json")
    files = {name: sha256_of(folder / name) for name in about["files"]}
    write_sealed(folder / "index.json", {**about, "files": files, **entries})


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
        monkeypatch.setattr(exact, "_BLOCK", block)
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

    def test_the_same_text_in_other_words_is_no_neighbour(self, elmo, tmp_path):
        """Oracle: by hand: the first two are one text; the third only looks as if it were a piece of it."""
        sentences = [["do", "n't", "go"], ["don't", "go"], ["go"]]
        index = build_index(elmo, sentences, tmp_path / "index", layer=0, progress=False)
        (vectors,) = elmo.embed([["go"]], layers=0)
        assert [neighbor.words for neighbor in index.search(vectors[0], 3, without=["don't", "go"])] == [["go"]]
        assert len(index.search(vectors[0], 3)) == 2

    def test_pieces_of_a_long_query_are_no_neighbours(self, elmo, tmp_path):
        """Oracle: by hand, of a line that `LmText` cuts; a short sentence within it is one."""
        line = [f"w{number}" for number in range(300)]
        (tmp_path / "a.txt").write_text(" ".join(line) + "\nw7\n")
        index = build_index(elmo, LmText(tmp_path / "a.txt"), tmp_path / "index", layer=0, progress=False)
        assert index.n_sentences == 3
        (vectors,) = elmo.embed([["w7"]], layers=0)
        assert [neighbor.words for neighbor in index.search(vectors[0], 3, without=line)] == [["w7"]]

    def test_many_vectors_have_the_neighbours_of_each(self, elmo, index):
        """Oracle: the search for one; each has its own sentence that does not count."""
        vectors = np.concatenate(elmo.embed(SENTENCES[:2], layers="top"))
        without = [SENTENCES[0]] * 5 + [SENTENCES[1]] * 5
        many = index.search_many(vectors, 3, without=without)
        for vector, sentence, found in zip(vectors, without, many, strict=True):
            one = index.search(vector, 3, without=sentence)
            assert [each[:2] for each in found] == [each[:2] for each in one]
            assert [each.similarity for each in found] == pytest.approx([each.similarity for each in one], abs=1e-5)

    def test_a_layer_is_one_of_the_index(self, elmo, tmp_path):
        """Oracle: the indexes of one layer each; the default is the last; the message for another."""
        several = build_index(elmo, SENTENCES, tmp_path / "index", layer=[0, 1], dtype="float32", progress=False)
        for layer in (0, 1):
            (vectors,) = elmo.embed([SENTENCES[1]], layers=layer)
            one = build_index(elmo, SENTENCES, tmp_path / f"{layer}", layer=layer, dtype="float32", progress=False)
            wanted = one.search(vectors[1], 3)
            assert [each[:2] for each in several.search(vectors[1], 3, layer=layer)] == [each[:2] for each in wanted]
        assert several.layer_of(None) == 1
        with pytest.raises(ValueError, match=r"was built with \(0, 1\), but is top: name one of them"):
            several.search(vectors[1], layer="top")

    def test_neighbours_may_be_filtered_by_their_tags(self, elmo, tmp_path):
        """Oracle: the search without a filter, of which the words with other tags are removed; and the messages."""
        tags = [["X" if word[0].isupper() else "Y" for word in words] for words in SENTENCES]
        tagged = [TaggedSentence(words, words, row) for words, row in zip(SENTENCES, tags, strict=True)]
        index = build_index(elmo, tagged, tmp_path / "index", dtype="float32", progress=False)
        (vectors,) = elmo.embed([SENTENCES[0]], layers="top")
        found = index.search(vectors[1], 9, where={"pos": "X"})
        assert [each.words[each.position] for each in found].count("They") == 1
        assert len(found) == 5 and all(each.position == 0 for each in found)
        assert [each.words for each in index.search(vectors[1], 9, where={"pos": "Y", "lemma": "café"})] == [
            SENTENCES[5]
        ]
        with pytest.raises(ValueError, match=r"by the tags of the text, but 'stem' is none; '.*' has lemma and pos"):
            index.search(vectors[1], where={"stem": "x"})
        with pytest.raises(ValueError, match=r"must leave some words, but no word of '.*' has pos=Z: capitals count"):
            index.search(vectors[1], where={"pos": "Z"})
        with pytest.raises(ValueError, match=r"has none: index CoNLL-U"):
            NeighborIndex(build_index(elmo, SENTENCES, tmp_path / "plain", progress=False).folder).rows_with(
                {"pos": "X"}
            )

    def test_an_index_of_an_older_version_is_read(self, copied):
        """Oracle: the entries that versions before layers, tags and digests wrote, by hand; the files are the same."""
        about = read_sealed(copied / "index.json")
        del about["digest"]
        assert set(about) == {"layer", "dim", "dtype", "files"}
        write_sealed(copied / "index.json", about)
        assert NeighborIndex(copied).n_sentences == len(SENTENCES)
        assert set(about["files"]) == {"vectors.bin", "sentences.txt", "starts.npy", "lines.npy"}

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
        with pytest.raises(ValueError, match=r"vectors.bin has 100 bytes and not 928"):
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
            ("index.json", b""),
            ("index.json", b"[" * 100_000),
            ("index.json", b"\xff\xfe"),
            ("starts.npy", b""),
            ("lines.npy", b"x"),
            ("sentences.txt", b"x"),
        ],
    )
    def test_a_damaged_file_is_an_error(self, copied, name, content):
        """Oracle: the message."""
        (copied / name).write_bytes(content)
        with pytest.raises(ValueError, match=r"the index '.*index' must be as they were made, but one is not: .*Build"):
            NeighborIndex(copied)

    @pytest.mark.parametrize("name", ["vectors.bin", "sentences.txt", "starts.npy", "lines.npy", "index.json"])
    def test_no_flipped_bit_goes_unseen(self, copied, name):
        """Oracle: an error that names the file, or the same content of the JSON; verify sees it too."""
        path = copied / name
        whole, about, places = path.read_bytes(), read_sealed(copied / "index.json"), random.Random(name)
        for _ in range(12):
            content = bytearray(whole)
            content[places.randrange(len(whole))] ^= 1 << places.randrange(8)
            path.write_bytes(content)
            try:
                index = NeighborIndex(copied)
            except ValueError as error:
                assert name in str(error)
            else:
                assert name == "index.json" and index.about == about

    @pytest.mark.parametrize("entry", range(11))
    def test_an_entry_with_a_right_checksum_may_still_be_wrong(self, copied, entry):
        """Oracle: the messages, for what a stranger has written who knows the format."""
        key, value, message = [
            ("dtype", "int16", "must have the dtype float16 or float32 or int8, but has 'int16'"),
            ("dtype", ">f2", "must have the dtype float16 or float32"),
            ("dim", "16", "must have a dim of at least 1"),
            ("dim", True, "must have a dim of at least 1"),
            ("layer", None, "must have a layer"),
            ("bilm", ["x"], "must have text as 'bilm'"),
            ("files", {"../vectors.bin": "0"}, "files of its own folder only"),
            ("files", {}, "has no SHA-256 of lines.npy"),
            ("layers", [], "must have layers, each once"),
            ("layers", [{}], "must have a layer, a number"),
            ("tags", ["../x"], "must have no tags but lemma, pos"),
        ][entry]
        rewrite(copied, **{key: value})
        with pytest.raises(ValueError, match=message):
            NeighborIndex(copied)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda starts: starts[::-1].copy(), "begin with 0 and never decrease"),
            (lambda starts: starts + 3, "begin with 0 and never decrease"),
            (lambda starts: starts.astype(np.float64), "one row of int64, but has float64"),
            (lambda starts: starts.astype(">i8"), "one row of int64, but has >i8"),
            (lambda starts: starts.reshape(-1, 1), "one row of int64"),
            (lambda starts: starts[:-1], "starts.npy has 6 numbers, but lines.npy has 7"),
            (lambda starts: starts.astype(object), "array of NumPy's"),
        ],
    )
    def test_starts_with_a_right_checksum_may_still_be_wrong(self, copied, change, message):
        """Oracle: the messages."""
        starts = np.load(copied / "starts.npy")
        np.save(copied / "starts.npy", change(starts))
        rewrite(copied)
        with pytest.raises(ValueError, match=message):
            NeighborIndex(copied)

    def test_an_array_that_claims_to_be_large_allocates_nothing(self, copied):
        """Oracle: the message; 8 PB would be a MemoryError."""
        content = (copied / "starts.npy").read_bytes()
        (copied / "starts.npy").write_bytes(content.replace(b"(7,), ", b"(10**15,), ").replace(b"10**15", b"9" * 15))
        rewrite(copied)
        with pytest.raises(ValueError, match=r"starts.npy must be an array of NumPy's"):
            NeighborIndex(copied)

    @pytest.mark.parametrize(("before", "after"), [(b"They", b"Th y"), ("é".encode(), b"\xe9e")])
    def test_a_sentence_that_is_not_the_one_of_the_vectors_is_an_error(self, copied, before, after):
        """Oracle: the message, of a word too many and of what is not UTF-8."""
        path = copied / "sentences.txt"
        path.write_bytes(path.read_bytes().replace(before, after))
        rewrite(copied)
        index = NeighborIndex(copied)
        with pytest.raises(ValueError, match=r"sentence \d in '.*sentences.txt' must be as it was indexed"):
            [index.sentence(number) for number in range(6)]

    def test_a_neighbor_has_names(self):
        """Oracle: by hand."""
        assert Neighbor(["a"], 0, 0.5)._asdict() == {"words": ["a"], "position": 0, "similarity": 0.5}
