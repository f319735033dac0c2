import pytest

from elmo_tasks.paper.measures import find_neighbors
from elmo_tasks.paper.neighbors import build_index
from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM

SOURCES = [
    "Chico Ruiz made a spectacular play on Alusik 's grounder in the hole .",
    "Olivia De Havilland signed to do a Broadway play for Garson Kanin .",
]


def test_neighbors_are_of_the_papers_sentences_in_the_text(tmp_path):
    sentences = [text.split() for text in [*SOURCES, "They saw the play .", "No other sentence ."]]
    index = build_index(Elmo.from_pretrained(TINY_BILM), sentences, tmp_path / "index")
    first, second = find_neighbors(index, sentences)
    assert first["source"].startswith("Chico Ruiz made a spectacular [play] on")
    assert second["source"].endswith("a Broadway [play] for Garson Kanin .")
    all_texts = {" ".join(words) for words in sentences}
    for row, source in ((first, SOURCES[0]), (second, SOURCES[1])):
        marked = [neighbor["sentence"] for neighbor in row["nearest"]]
        texts = {text.replace("[", "").replace("]", "") for text in marked}
        # One word of each other sentence.
        assert texts == all_texts - {source}


def test_a_text_without_the_sentences_is_an_error(tmp_path):
    sentences = [["No", "other", "sentence", "."]]
    index = build_index(Elmo.from_pretrained(TINY_BILM), sentences, tmp_path / "index")
    with pytest.raises(ValueError, match="Chico Ruiz"):
        find_neighbors(index, sentences)
