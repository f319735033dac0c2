"""
The same text has the same words and vectors at every entry point: the table in
docs/vectors/words.md.
"""

import logging
import re
import unicodedata
from itertools import chain
from pathlib import Path

import h5py
import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from elmo_tasks import Elmo, ElmoEmbedder
from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from elmo_tasks.data import LmText
from elmo_tasks.spacy.elmo_component import ElmoComponent
from elmo_tasks.vectors.sklearn_vectorizer import ElmoVectorizer
from tests.paths import TINY_BILM, bilm_files
from tests.vectors.helpers import assert_all_equal

BILM = str(TINY_BILM)
# A text, and its words by spaCy's rules for English and at white space.
TEXTS = {
    "NFD": ("Cafe\u0301 .", ["Café", "."], ["Café", "."]),
    "contraction": ("I don't go.", ["I", "do", "n't", "go", "."], ["I", "don't", "go."]),
    "Korean": (
        unicodedata.normalize("NFD", "눈이 온다 ."),
        ["눈이", "온다", "."],
        ["눈이", "온다", "."],
    ),
    "NUL": ("It \0 .", ["It", "\ufffd", "."], ["It", "\ufffd", "."]),
    "empty": ("", [], []),
    "spaces": (" \t ", [], []),
}
each_text = pytest.mark.parametrize(
    ("text", "by_rules", "at_spaces"), TEXTS.values(), ids=list(TEXTS)
)


def vectors_of_line(line: str, folder: Path, elmo: Elmo, **options: str) -> np.ndarray:
    text = folder / "text.txt"
    text.write_text(f"{line}\n", encoding="utf-8")
    output = folder / "out.h5"
    embed_file(text, output, EmbedOptions(BILM, **options), elmo=elmo, force=True)
    with h5py.File(output) as file:
        return file["0"][()]


@each_text
def test_a_string_is_split_by_rules(elmo, tmp_path, text, by_rules, at_spaces):
    (expected,) = elmo.embed([by_rules])
    own_tokenizer = Elmo.from_pretrained(BILM, tokenizer=lambda given: by_rules)
    for vectors_of_texts in (
        elmo.embed([text]),
        elmo.embed(text),
        elmo.embed_documents([text]),
        own_tokenizer.embed([text]),
    ):
        assert_all_equal(vectors_of_texts, [expected])
    doc = ElmoComponent(bilm=BILM, pool=None)(spacy.blank("en")(text))
    assert np.array_equal(doc._.elmo[: len(expected)], expected)
    assert np.array_equal(vectors_of_line(text, tmp_path, elmo, tokenize="en"), expected)
    pooled = ElmoVectorizer(BILM).transform([text])
    assert np.array_equal(pooled, elmo.embed([by_rules], pool="mean"))


@each_text
def test_a_line_of_a_file_is_split_at_white_space(elmo, tmp_path, text, by_rules, at_spaces):
    (expected,) = elmo.embed([at_spaces])
    assert np.array_equal(vectors_of_line(text, tmp_path, elmo), expected)
    if at_spaces:
        assert list(LmText(tmp_path / "text.txt")) == [at_spaces]
    for tokenizer in ("whitespace", str.split):
        (vectors,) = Elmo.from_pretrained(BILM, tokenizer=tokenizer).embed([text])
        assert np.array_equal(vectors, expected)
    pooled = ElmoVectorizer(BILM, tokenizer="whitespace").transform([text])
    assert np.array_equal(pooled, elmo.embed([at_spaces], pool="mean"))


def test_a_list_of_words_is_used_as_it_is(elmo):
    words = ["Cafe\u0301", "go."]
    (vectors,) = elmo.embed([words])
    (vectors_in_nfc,) = elmo.embed([["Café", "go."]])
    assert not np.allclose(vectors[0], vectors_in_nfc[0])
    (vectors_of_document,) = elmo.embed_documents([[words]])
    np.testing.assert_allclose(vectors_of_document, vectors, atol=1e-6)
    layers = ElmoEmbedder(*bilm_files(TINY_BILM)).embed_sentence(words)
    np.testing.assert_allclose(layers.mean(0), vectors, atol=1e-6)


class TestDocs:
    """Documents of spaCy, with tokens of white space, a decomposed letter and own sentences."""

    TOKENS = ("Cafe\u0301s", "  ", "are", "open", ".", "\n", "Go", "in")
    STARTS = (True, False, False, True, False, False, True, False)
    SENTENCES = (["Caf\u00e9s", "are"], ["open", "."], ["Go", "in"])

    @pytest.fixture
    def doc(self) -> Doc:
        return Doc(spacy.blank("en").vocab, words=self.TOKENS, sent_starts=self.STARTS)

    def test_a_doc_is_a_sentence_with_its_own_words(self, elmo, doc):
        words = list(chain.from_iterable(self.SENTENCES))
        (expected,) = elmo.embed([words])
        assert_all_equal(elmo.embed([doc]), [expected])
        assert_all_equal(elmo.embed(doc), [expected])
        pooled = ElmoVectorizer(BILM).transform([doc])
        np.testing.assert_allclose(pooled[0], expected.mean(0), rtol=0, atol=1e-6)

    def test_its_sentences_are_sentences(self, elmo, doc):
        expected = elmo.embed(list(self.SENTENCES))
        assert_all_equal(elmo.embed(doc.sents), expected)
        for document in (doc, list(doc.sents)):
            (vectors,) = elmo.embed_documents([document])
            np.testing.assert_allclose(vectors, np.concatenate(expected), rtol=0, atol=1e-6)

    def test_without_sentences_a_document_is_split_by_the_rule(self, elmo, doc):
        doc_without_sentences = Doc(doc.vocab, words=self.TOKENS)
        (vectors,) = elmo.embed_documents([doc_without_sentences])
        sentences = [["Caf\u00e9s", "are", "open", "."], ["Go", "in"]]
        expected = np.concatenate(elmo.embed(sentences))
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)


def test_a_column_of_an_array_is_a_list_of_texts(elmo):
    texts = ["The bank is open.", "Go."]
    expected = elmo.embed(texts)
    means = [array.mean(0) for array in expected]
    for dtype in (str, object):
        column = np.array(texts, dtype=dtype)[:, None]
        assert_all_equal(elmo.embed(column), expected)
        pooled = ElmoVectorizer(BILM).transform(column)
        np.testing.assert_allclose(pooled, means, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mark", ["<pad>", "[PAD]", "</s>"])
def test_padding_gives_a_warning(elmo, mark):
    embedder = ElmoEmbedder(*bilm_files(TINY_BILM))
    sentences = [["Go", "in", mark]]
    message = re.escape(f"'{mark}' is embedded as a word")
    for embed in (elmo.embed, embedder.embed_batch, embedder.batch_to_embeddings):
        with pytest.warns(UserWarning, match=message):
            embed(sentences)
    with pytest.warns(UserWarning, match=message):
        elmo.embed_documents([sentences])


@pytest.mark.parametrize(
    ("lines", "warns"),
    [
        (["The bank is closed."] + 3 * ["It is open ."], True),
        (["The bank is closed."] + 9 * ["It is open ."], False),
        (["He waits ...", "", "Why ?"], False),
        (1000 * ["It is open ."] + 1000 * ["The bank is closed."], False),
    ],
)
def test_text_that_looks_untokenised_gives_one_warning(elmo, tmp_path, caplog, lines, warns):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"{line}\n" for line in lines))
    # A job also logs when it starts and ends.
    with caplog.filtering(lambda record: record.levelno >= logging.WARNING):
        for _ in range(2):
            assert len(list(LmText(text))) == sum(map(bool, lines))
        options = EmbedOptions(BILM, pool="mean")
        embed_file(text, tmp_path / "out.h5", options, elmo=elmo)
        options_with_rules = EmbedOptions(BILM, tokenize="en", pool="mean")
        embed_file(text, tmp_path / "split.h5", options_with_rules, elmo=elmo)
    assert len(caplog.records) == warns
    for record in caplog.records:
        assert "--tokenize" in record.message
        assert "closed." in record.message
