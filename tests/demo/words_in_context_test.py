import json
import unicodedata

import numpy as np
import pytest

from elmo_tasks.analysis import StaticVectors, build_index, find_neighbors
from elmo_tasks.demo.texts import Texts
from elmo_tasks.demo.word_indexes import LayerIndex
from elmo_tasks.demo.words_in_context import WordsInContext, layer_name
from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM

TEXT = ["They play on Saturdays .", "The play opens at the theatre .", "She can play the piano .", "Yes ."]
SENTENCES = ["Play it again .", "The play , a play"]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> WordsInContext:
    """With indexes of the lowest and the highest layer."""
    elmo, folder = Elmo.from_pretrained(TINY_BILM), tmp_path_factory.mktemp("indexes")
    text = [line.split() for line in TEXT]
    about = {"bilm": str(TINY_BILM)}
    indexes = {
        layer: LayerIndex(build_index(elmo, text, folder / str(layer), layer=layer, about=about, progress=False), layer)
        for layer in (0, elmo.n_layers - 1)
    }
    static = StaticVectors(["play", "game", "stage"], np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]))
    return WordsInContext(elmo=elmo, texts=Texts(), indexes=indexes, static=static)


class TestWordsInContext:
    def test_the_vectors_of_all_occurrences_are_compared(self, words):
        """Oracle: `Elmo.embed`, and cosines in NumPy; the context-insensitive vectors of one spelling are the same."""
        found = words.similarity(SENTENCES, "play")
        assert [(one["words"][0], one["position"]) for one in found["occurrences"]] == [
            ("Play", 0),
            ("The", 1),
            ("The", 4),
        ]
        embedded = words.elmo.embed([line.split() for line in SENTENCES], layers="all", progress=False)
        for layer in found["layers"]:
            vectors = np.stack([embedded[0][layer["layer"], 0], *embedded[1][layer["layer"], [1, 4]]])
            np.testing.assert_allclose(layer["vectors"], vectors, atol=1e-5)
            unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            np.testing.assert_allclose(layer["similarity"], unit @ unit.T, atol=1e-5)
        assert len(found["layers"]) == words.elmo.n_layers
        assert found["layers"][0]["similarity"][1][2] == pytest.approx(1, abs=1e-5)
        assert json.loads(json.dumps(found)) == found

    def test_white_space_and_case_of_the_word_do_not_matter(self, words):
        """Oracle: the word as it is in the sentences."""
        sentences = ["They play football .", "The play opens ."]
        assert words.similarity(sentences, " PLAY\n") == words.similarity(sentences, "play")

    def test_neighbors_are_those_of_the_command(self, words):
        """Oracle: `find_neighbors`, which opens the index and the biLM itself, for each layer and occurrence."""
        found = words.neighbors(SENTENCES, "play", k=2)
        assert [layer["layer"] for layer in found["layers"]] == [0, words.elmo.n_layers - 1]
        for layer in found["layers"]:
            for occurrence, neighbors in zip(found["occurrences"], layer["neighbors"], strict=True):
                folder = words.indexes[layer["layer"]].index.folder
                expected = find_neighbors(folder, occurrence["words"], occurrence["position"], k=2).neighbors
                assert [(one["words"], one["position"]) for one in neighbors] == [one[:2] for one in expected]
        assert [one["word"] for one in found["static"]] == ["game", "stage"]
        assert json.loads(json.dumps(found)) == found

    def test_a_map_has_the_own_sentences_and_those_of_the_index(self, words):
        """Oracle: the occurrences by hand; for equal vectors, of layer 0, equal places."""
        found = words.map(SENTENCES, "play")
        for layer in found["layers"]:
            assert [point["own"] for point in layer["points"]] == [1, 2, 3, None, None, None]
            assert [point["words"][0] for point in layer["points"]] == ["Play", "The", "The", "They", "The", "She"]
            assert layer["n_all"] == 3
        lower_case = [(point["x"], point["y"]) for point in found["layers"][0]["points"][1:]]
        np.testing.assert_allclose(lower_case, [lower_case[0]] * 5, atol=1e-2)
        assert json.loads(json.dumps(found)) == found

    def test_sentences_and_word_are_in_one_unicode_form(self, words):
        """Oracle: the same in the other form."""
        composed, decomposed = (unicodedata.normalize(form, "a café") for form in ("NFC", "NFD"))
        for call in (words.similarity, words.neighbors, words.map):
            assert call([decomposed], decomposed.split()[1]) == call([composed], composed.split()[1])

    def test_a_word_that_the_index_does_not_have_is_alone_on_its_map(self, words):
        """Oracle: by hand."""
        found = words.map(["a zebra"], "zebra")
        assert [point["own"] for point in found["layers"][0]["points"]] == [1]
        assert found["layers"][0]["n_all"] == 0

    @pytest.mark.parametrize(
        ("sentences", "word", "message"),
        [
            (["They play", "a game"], "play", "'play' is not in sentence 2, whose words are: a game"),
            (["They play", ""], "play", "sentence 2 must have at least one word, but is empty"),
            ([], "play", "there must be at least one sentence"),
            (["They play"], "", "the word must be one of the sentences, a single one, but is ''"),
            (["They play"], "They play", "a single one, but is 'They play'"),
            (["They play"], 7, "a single one, but is 7"),
            (["They play " + "x " * 10_000], "play", "at most 200 words, but has 10,002"),
            (["play " * 40] * 2, "play", "at most 48 times in all sentences together, but 'play' occurs 80 times"),
        ],
    )
    def test_bad_input_is_refused_in_a_sentence(self, words, sentences, word, message):
        """Oracle: the messages, of all three functions."""
        for function in (words.similarity, words.neighbors, words.map):
            with pytest.raises(ValueError, match=message):
                function(sentences, word)

    @pytest.mark.parametrize("k", [0, 51, "8", True])
    def test_the_number_of_neighbors_is_limited(self, words, k):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="k must be a whole number from 1 to 50"):
            words.neighbors(SENTENCES, "play", k)


class TestLayerName:
    def test_the_lowest_and_the_highest_lstm_are_named(self):
        """Oracle: by hand, for biLMs of two LSTMs, of one, and of three."""
        assert [layer_name(layer, 3) for layer in range(3)] == [
            "layer 0, context-insensitive",
            "layer 1, lowest LSTM",
            "layer 2, highest LSTM",
        ]
        assert layer_name(1, 2) == "layer 1"
        assert layer_name(2, 4) == "layer 2"
