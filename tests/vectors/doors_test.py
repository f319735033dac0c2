"""
The same text has the same words and vectors at every door: the table in docs/vectors/words.md.
"""

import logging
import re
import unicodedata
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


def of_line(line: str, folder: Path, elmo: Elmo, **options: str) -> np.ndarray:
    (folder / "text.txt").write_text(f"{line}\n", encoding="utf-8")
    embed_file(
        folder / "text.txt", folder / "out.h5", EmbedOptions(BILM, **options), elmo=elmo, force=True
    )
    with h5py.File(folder / "out.h5") as file:
        return file["0"][()]


@each_text
def test_a_string_is_split_by_rules(elmo, tmp_path, text, by_rules, at_spaces):
    (expected,) = elmo.embed([by_rules])
    component = ElmoComponent(bilm=BILM, pool=None)
    for found in (
        *elmo.embed([text]),
        *elmo.embed(text),
        *elmo.embed_documents([text]),
        *Elmo.from_pretrained(BILM, tokenizer=lambda given: by_rules).embed([text]),
        component(spacy.blank("en")(text))._.elmo[: len(expected)],
        of_line(text, tmp_path, elmo, tokenize="en"),
    ):
        assert np.array_equal(found, expected)
    assert np.array_equal(
        ElmoVectorizer(BILM).transform([text]), elmo.embed([by_rules], pool="mean")
    )


@each_text
def test_a_line_of_a_file_is_split_at_white_space(elmo, tmp_path, text, by_rules, at_spaces):
    (expected,) = elmo.embed([at_spaces])
    assert np.array_equal(of_line(text, tmp_path, elmo), expected)
    if at_spaces:
        assert list(LmText(tmp_path / "text.txt")) == [at_spaces]
    for found in (
        Elmo.from_pretrained(BILM, tokenizer="whitespace").embed([text]),
        Elmo.from_pretrained(BILM, tokenizer=str.split).embed([text]),
    ):
        assert np.array_equal(found[0], expected)
    pooled = ElmoVectorizer(BILM, tokenizer="whitespace").transform([text])
    assert np.array_equal(pooled, elmo.embed([at_spaces], pool="mean"))


def test_a_list_of_words_is_used_as_it_is(elmo):
    words = ["Cafe\u0301", "go."]
    (found,), (nfc,) = elmo.embed([words]), elmo.embed([["Café", "go."]])
    assert not np.allclose(found[0], nfc[0])
    for same in (
        *elmo.embed_documents([[words]]),
        ElmoEmbedder(*bilm_files(TINY_BILM)).embed_sentence(words).mean(0),
    ):
        np.testing.assert_allclose(same, found, atol=1e-6)


class TestDocs:
    """Documents of spaCy, with tokens of white space, a decomposed letter and own sentences."""

    TOKENS = ("Cafe\u0301s", "  ", "are", "open", ".", "\n", "Go", "in")
    STARTS = (True, False, False, True, False, False, True, False)
    SENTENCES = (["Caf\u00e9s", "are"], ["open", "."], ["Go", "in"])

    @pytest.fixture
    def doc(self) -> Doc:
        return Doc(spacy.blank("en").vocab, words=self.TOKENS, sent_starts=self.STARTS)

    def test_a_doc_is_a_sentence_with_its_own_words(self, elmo, doc):
        (expected,) = elmo.embed([[word for sentence in self.SENTENCES for word in sentence]])
        for found in (elmo.embed([doc])[0], elmo.embed(doc)[0]):
            assert np.array_equal(found, expected)
        pooled = ElmoVectorizer(BILM).transform([doc])
        np.testing.assert_allclose(pooled[0], expected.mean(0), rtol=0, atol=1e-6)

    def test_its_sentences_are_sentences(self, elmo, doc):
        expected = elmo.embed(list(self.SENTENCES))
        assert all(map(np.array_equal, elmo.embed(doc.sents), expected))
        for document in (doc, list(doc.sents)):
            (found,) = elmo.embed_documents([document])
            np.testing.assert_allclose(found, np.concatenate(expected), rtol=0, atol=1e-6)

    def test_without_sentences_a_document_is_split_by_the_rule(self, elmo, doc):
        without = Doc(doc.vocab, words=self.TOKENS)
        sentences = [["Caf\u00e9s", "are", "open", "."], ["Go", "in"]]
        (found,) = elmo.embed_documents([without])
        np.testing.assert_allclose(found, np.concatenate(elmo.embed(sentences)), rtol=0, atol=1e-6)


def test_a_column_of_an_array_is_a_list_of_texts(elmo):
    texts = ["The bank is open.", "Go."]
    expected = elmo.embed(texts)
    for column in (np.array(texts)[:, None], np.array(texts, dtype=object)[:, None]):
        assert all(map(np.array_equal, elmo.embed(column), expected))
        pooled = ElmoVectorizer(BILM).transform(column)
        np.testing.assert_allclose(pooled, [array.mean(0) for array in expected], rtol=0, atol=1e-6)


@pytest.mark.parametrize("mark", ["<pad>", "[PAD]", "</s>"])
def test_padding_gives_a_warning(elmo, mark):
    embedder = ElmoEmbedder(*bilm_files(TINY_BILM))
    for embed in (
        elmo.embed,
        elmo.embed_documents,
        embedder.embed_batch,
        embedder.batch_to_embeddings,
    ):
        sentence = ["Go", "in", mark]
        with pytest.warns(UserWarning, match=re.escape(f"'{mark}' is embedded as a word")):
            embed([[sentence]] if embed == elmo.embed_documents else [sentence])


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
        assert len(list(LmText(text))) == len(list(LmText(text))) == sum(map(bool, lines))
        embed_file(text, tmp_path / "out.h5", EmbedOptions(BILM, pool="mean"), elmo=elmo)
        embed_file(
            text, tmp_path / "split.h5", EmbedOptions(BILM, tokenize="en", pool="mean"), elmo=elmo
        )
    assert [
        ("--tokenize" in record.message, "closed." in record.message) for record in caplog.records
    ] == warns * [(True, True)]
