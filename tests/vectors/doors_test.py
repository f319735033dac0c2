"""The same text has the same words and vectors at every door: the table in docs/vectors/words.md."""

import logging
import unicodedata
from pathlib import Path

import h5py
import numpy as np
import pytest
import spacy

from elmo_tasks import Elmo, ElmoEmbedder
from elmo_tasks.data import LmText
from elmo_tasks.embed import EmbedOptions, embed_file
from elmo_tasks.spacy.component import ElmoComponent
from elmo_tasks.vectors.sklearn_vectorizer import ElmoVectorizer
from tests.paths import TINY_BILM, bilm_files

BILM = str(TINY_BILM)
# A text, and its words by spaCy's rules for English and at white space.
TEXTS = {
    "NFD": ("Cafe\u0301 .", ["Café", "."], ["Café", "."]),
    "contraction": ("I don't go.", ["I", "do", "n't", "go", "."], ["I", "don't", "go."]),
    "Korean": (unicodedata.normalize("NFD", "눈이 온다 ."), ["눈이", "온다", "."], ["눈이", "온다", "."]),
    "NUL": ("It \0 .", ["It", "\ufffd", "."], ["It", "\ufffd", "."]),
    "empty": ("", [], []),
    "spaces": (" \t ", [], []),
}
each_text = pytest.mark.parametrize(("text", "by_rules", "at_spaces"), TEXTS.values(), ids=list(TEXTS))


def of_line(line: str, folder: Path, elmo: Elmo, **options: str) -> np.ndarray:
    (folder / "text.txt").write_text(f"{line}\n", encoding="utf-8")
    embed_file(folder / "text.txt", folder / "out.h5", EmbedOptions(BILM, **options), elmo=elmo, force=True)
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
    assert np.array_equal(ElmoVectorizer(BILM).transform([text]), elmo.embed([by_rules], pool="mean"))


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
        embed_file(text, tmp_path / "split.h5", EmbedOptions(BILM, tokenize="en", pool="mean"), elmo=elmo)
    assert [("--tokenize" in record.message, "closed." in record.message) for record in caplog.records] == warns * [
        (True, True)
    ]
