import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from elmo_tasks.text import (
    MAX_SENTENCE_WORDS,
    located_sentences,
    located_words,
    pieces,
    sentence_ranges,
    sentences_of_text,
    words_of_text,
)

TEXT = "\n She saw René.  He sang \n\n  and \t danced \n ; 눈이 온다 . \n \n (Why?)\n"
WORDS = [
    ["She", "saw", "René", "."],
    ["He", "sang"],
    ["and", "danced", ";", "눈이", "온다", "."],
    ["(", "Why", "?", ")"],
]
TOKENIZERS = ["en", "xx", "whitespace", lambda text: text.replace(".", " .").split()]


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_words_equal_spacys_without_white_space(language):
    for text in (
        "Mr. O'Neill doesn't live\tin  the U.K.\n",
        "",
        "   ",
        "e.g. 3.5km, $5bn; z.B. don't!",
    ):
        expected = [token.text for token in spacy.blank(language)(text) if not token.text.isspace()]
        assert words_of_text(text, language) == expected


def test_errors_name_the_missing_package(monkeypatch):
    with pytest.raises(ImportError, match="klingon"):
        words_of_text("text", "klingon")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ModuleNotFoundError, match="spacy"):
        words_of_text("text", "it")


def test_memory_is_bounded(monkeypatch):
    """A pipeline that has seen many distinct words is replaced."""
    made = []
    blank = spacy.blank
    monkeypatch.setattr(spacy, "blank", lambda language: made.append(blank(language)) or made[-1])
    words_of_text("a", "is")
    for i in range(301_000):
        made[0].vocab.strings.add(f"word{i}")
    words_of_text("a", "is")
    assert len(made) == 2 and len(made[1].vocab.strings) < 10_000


def test_sentences_end_at_full_stops_but_not_in_abbreviations():
    assert sentences_of_text(" Mr. Hill left.\n\nWhy? \n") == [
        ["Mr.", "Hill", "left", "."],
        ["Why", "?"],
    ]
    ranges = sentence_ranges(["눈", "。", "", "Why", "?", "So"])
    assert ranges == [range(2), range(2, 5), range(5, 6)]


def test_a_text_without_words_has_no_sentences():
    assert sentences_of_text(" \n ") == []
    assert sentences_of_text("") == []
    assert located_sentences("") == []
    assert located_words("") == []
    assert sentence_ranges([]) == []


TOKENS = st.sampled_from(["a", ".", "?!", "!", "”", "(", " ", "\n", "。", "...", "…"])


@settings(max_examples=50)
@given(st.lists(TOKENS, min_size=1))
def test_sentences_begin_where_spacys_do(tokens):
    doc = Sentencizer()(Doc(spacy.blank("xx").vocab, words=tokens))
    expected = [range(sentence.start, sentence.end) for sentence in doc.sents]
    assert sentence_ranges(tokens) == expected


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_blank_line_ends_a_sentence(form):
    assert sentences_of_text(unicodedata.normalize(form, TEXT)) == WORDS
    assert sentences_of_text("a b\n \nc d\ne f", "whitespace") == [["a", "b"], ["c", "d", "e", "f"]]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_words_have_their_places_in_the_given_text(tokenizer, form):
    text = unicodedata.normalize(form, TEXT)
    sentences = located_sentences(text, tokenizer)
    expected = sentences_of_text(TEXT, tokenizer)
    assert [[word.text for word in sentence] for sentence in sentences] == expected
    words = located_words(text, tokenizer)
    assert words == list(chain.from_iterable(sentences))
    normal_texts = []
    for word in words:
        normal_texts.append(unicodedata.normalize("NFC", text[word.start : word.end]))
    assert normal_texts == words_of_text(TEXT, tokenizer)


@pytest.mark.parametrize("n_characters", [1, 2, 3])
def test_a_character_that_nfc_expands_is_not_divided(n_characters):
    """U+1D15E and U+1D160 are notes, and NFC makes two and three characters of them."""
    notes = "\U0001d15e x\U0001d160\U0001d15e"
    normal = unicodedata.normalize("NFC", notes)

    def in_pieces(text: str) -> list[str]:
        parts = []
        for word in text.split():
            for start in range(0, len(word), n_characters):
                parts.append(word[start : start + n_characters])
        return parts

    words = located_words(notes, in_pieces)
    assert "".join(word.text for word in words) == normal.replace(" ", "")
    for word in words:
        assert word.text in unicodedata.normalize("NFC", notes[word.start : word.end])
    assert (words[0].start, words[0].end) == (0, 1)


def test_words_that_are_not_in_the_text_have_no_place():
    def in_lower_case(text: str) -> list[str]:
        return text.lower().split()

    assert sentences_of_text("Ab cd", in_lower_case) == [["ab", "cd"]]
    with pytest.raises(ValueError, match="'ab'"):
        located_words("Ab cd", in_lower_case)


def test_more_than_a_million_characters_are_a_text():
    n_sentences = 10_001
    text = (100 * "a" + ". ") * n_sentences
    assert len(text) > 1_000_000
    assert len(sentences_of_text(text)) == len(located_sentences(text)) == n_sentences


def test_many_threads_split_like_one():
    texts = [f"Word{i} isn't here. See z{i}.org, René!\n\nNo {i}" for i in range(300)]
    expected = [located_sentences(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(
            pool.map(lambda _: [located_sentences(text) for text in texts], range(8))
        ) == 8 * [expected]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("", [0]),
        ("a b c d e f g h", [8]),
        ("a b c d e f g h i j", [8, 10]),
        ("a b , d e , g h i j k l m n o p q r", [6, 14, 18]),
        ("a b , d e f g h i", [8, 9]),
        ("a b c , d e f ) i", [8, 9]),
    ],
)
def test_an_overlong_sentence_is_cut_after_punctuation(sentence, expected):
    words = sentence.split()
    found = pieces(words, 8)
    assert [piece.stop for piece in found] == expected
    assert [place for piece in found for place in piece] == list(range(len(words)))


def test_pieces_have_the_default_length():
    assert pieces(["a"] * MAX_SENTENCE_WORDS) == [range(MAX_SENTENCE_WORDS)]
    assert len(pieces(["a"] * 10 * MAX_SENTENCE_WORDS)) == 10
