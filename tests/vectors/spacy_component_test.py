"""Tests of the component for spaCy."""

import configparser
import errno
import gc
import itertools
import os
import shutil
from functools import lru_cache
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, Token

from elmo_tasks import Elmo
from elmo_tasks.vectors.spacy_component import _VECTORS, ElmoComponent
from tests.paths import CHECKOUT, TINY_BILM

TEXT = "It  rains. Mr. Hill\nstays here.\n"
SENTENCES = [["It", "rains", "."], ["Mr.", "Hill", "stays", "here", "."]]


@pytest.fixture(scope="module")
def tiny(fixtures_root: Path) -> str:
    return str(TINY_BILM)


@pytest.fixture(scope="module")
def elmo(tiny: str) -> Elmo:
    return Elmo.from_pretrained(tiny)


@lru_cache
def blank() -> spacy.Language:
    return spacy.blank("en")


def pipeline(bilm: str, *, sentencizer: bool = True, **config: object) -> spacy.Language:
    # Making a tokenizer takes longer than everything else here.
    nlp = type(blank())(vocab=blank().vocab, create_tokenizer=lambda nlp: blank().tokenizer)
    if sentencizer:
        nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"bilm": bilm, **config})
    return nlp


def words(item: Doc | Span) -> list[Token]:
    return [token for token in item if not token.is_space]


class TestVectors:
    def test_tokens_have_the_vectors_of_their_sentences(self, tiny, elmo):
        """Oracle: `Elmo` on the sentences by hand; white space has zeros."""
        doc = pipeline(tiny)(TEXT)
        assert [token.text for token in words(doc)] == [word for sentence in SENTENCES for word in sentence]
        for token, expected in zip(words(doc), np.concatenate(elmo.embed(SENTENCES)), strict=True):
            assert token._.elmo.shape == (elmo.dim,)
            np.testing.assert_allclose(token._.elmo, expected, rtol=0, atol=1e-6)
        spaces = [token for token in doc if token.is_space]
        assert len(spaces) == 3
        assert not any(token._.elmo.any() for token in spaces)

    @pytest.mark.parametrize("config", [{"sentencizer": False}, {"whole_document": True}])
    def test_without_sentences_a_document_is_one(self, tiny, elmo, config):
        """Oracle: `Elmo` on all words as one sentence."""
        doc = pipeline(tiny, **config)(TEXT)
        (expected,) = elmo.embed([SENTENCES[0] + SENTENCES[1]])
        np.testing.assert_allclose([token._.elmo for token in words(doc)], expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("pool", ["mean", "max", "first-last"])
    def test_spans_and_documents_have_the_pool_of_their_words(self, tiny, pool):
        """Oracle: NumPy over the vectors of the words."""
        doc = pipeline(tiny, pool=pool)(TEXT)
        for what in (doc, doc[:], doc[0:3], doc[4:9], doc[3:4], *list(doc.sents)[:2]):
            vectors = np.stack([token._.elmo for token in words(what)])
            half = vectors.shape[1] // 2
            expected = {
                "mean": vectors.mean(0),
                "max": vectors.max(0),
                "first-last": np.concatenate([vectors[-1, :half], vectors[0, half:]]),
            }[pool]
            np.testing.assert_allclose(what._.elmo, expected, rtol=0, atol=1e-6)

    def test_without_pool_they_have_all_their_tokens(self, tiny):
        """Oracle: the vectors of the tokens, white space among them."""
        doc = pipeline(tiny, pool=None)(TEXT)
        for what in (doc, doc[2:6]):
            assert np.array_equal(what._.elmo, np.stack([token._.elmo for token in what]))

    def test_the_settings_are_those_of_elmo(self, tiny, elmo):
        """Oracle: `Elmo` with the same arguments."""
        for config in ({"layers": "all"}, {"layers": 1, "gamma": 2.0}, {"weights": [0.0, 1.0, -1.0]}):
            doc = pipeline(tiny, **config)("It rains.")
            (expected,) = elmo.embed(SENTENCES[:1], **config)
            np.testing.assert_allclose(doc[1]._.elmo, expected[..., 1, :], rtol=0, atol=1e-6)
            np.testing.assert_allclose(doc._.elmo, expected.mean(-2), rtol=0, atol=1e-6)

    @pytest.mark.parametrize("text", ["", " \n "])
    def test_a_document_without_words_has_zeros(self, tiny, elmo, text):
        """Oracle: by hand."""
        doc = pipeline(tiny)(text)
        assert doc._.elmo.shape == (elmo.dim,)
        assert not doc._.elmo.any()
        assert pipeline(tiny, pool=None)(text)._.elmo.shape == (len(doc), elmo.dim)


class TestPipe:
    def test_many_documents_have_the_vectors_that_each_has(self, tiny):
        """Oracle: the documents one by one, in their order, with their contexts."""
        nlp = pipeline(tiny, batch_tokens=12)
        texts = [TEXT, "", "Yes.", "  ", "One. Two. Three, four.", TEXT] * 3
        found = list(nlp.pipe([(text, index) for index, text in enumerate(texts)], as_tuples=True, batch_size=2))
        assert [context for _, context in found] == list(range(len(texts)))
        for (doc, _), text in zip(found, texts, strict=True):
            assert doc.text == text
            np.testing.assert_allclose(doc._.elmo, nlp(text)._.elmo, rtol=0, atol=1e-6)

    def test_no_more_is_read_than_is_needed(self, tiny):
        """Oracle: the number of documents that have been read from a stream without an end."""
        nlp = pipeline(tiny, batch_tokens=20)
        read = []
        stream = (read.append(index) or nlp.make_doc("a b c d e f g h") for index in itertools.count())
        docs = nlp.get_pipe("elmo").pipe(stream)
        assert len([next(docs) for _ in range(40)]) == 40
        assert 40 <= len(read) <= 60


class TestWhereTheVectorsAre:
    def test_the_user_data_stays_as_it_is(self, tiny):
        """Oracle: the user's entry alone."""
        nlp = pipeline(tiny, similarity=True)
        doc = nlp.make_doc(TEXT)
        doc.user_data["mine"] = 1
        doc = nlp(doc)
        assert doc._.elmo.any()
        assert doc[0]._.elmo.any()
        assert doc.user_data == {"mine": 1}
        assert not doc.tensor.size

    def test_vectors_are_freed_with_their_document(self, tiny):
        """Oracle: the number of arrays that are kept."""
        nlp = pipeline(tiny)
        gc.collect()
        before = len(_VECTORS)
        doc = nlp(TEXT)
        assert len(_VECTORS) == before + 1
        del doc
        gc.collect()
        assert len(_VECTORS) == before

    def test_a_document_from_elsewhere_has_no_vectors(self, tiny):
        """Oracle: the message; its remedy helps."""
        nlp = pipeline(tiny)
        doc = nlp(TEXT)
        copies = [nlp.make_doc(TEXT), doc.copy(), Doc(nlp.vocab).from_bytes(doc.to_bytes())]
        for copy in copies:
            for what in (copy, copy[0], copy[0:2]):
                with pytest.raises(ValueError, match=r"this Doc has no ELMo vectors: .*get_pipe\('elmo'\)\(doc\)"):
                    what._.elmo  # noqa: B018
        assert np.array_equal(nlp.get_pipe("elmo")(copies[2])._.elmo, doc._.elmo)

    def test_in_user_data_they_go_into_files(self, tiny):
        """Oracle: the vectors of the document, from a `DocBin`; one key."""
        nlp = pipeline(tiny, in_user_data=True, layers="all")
        doc = nlp(TEXT)
        assert len(doc.user_data) == 1
        data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
        (again,) = DocBin(store_user_data=True).from_bytes(data).get_docs(nlp.vocab)
        for ours, theirs in ((again, doc), (again[2], doc[2]), (again[1:4], doc[1:4])):
            assert np.array_equal(ours._.elmo, theirs._.elmo)

    def test_tokens_that_were_merged_afterwards_are_an_error(self, tiny):
        """Oracle: the two numbers in the message."""
        doc = pipeline(tiny)("It rains .")
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:2])
        with pytest.raises(ValueError, match="had 3 and has 2: put 'elmo' after the components that merge"):
            doc._.elmo  # noqa: B018

    def test_a_second_component_is_an_error(self, tiny):
        """Oracle: the message; the same one may embed a document again."""
        nlp = pipeline(tiny)
        with pytest.raises(ValueError, match=r"one component .* alone .* 'other' comes after 'elmo'"):
            nlp.add_pipe("elmo", name="other", config={"bilm": tiny, "layers": 0})
        doc = nlp(TEXT)
        other = pipeline(tiny, layers=0)
        assert np.array_equal(other.get_pipe("elmo")(doc)._.elmo, other(TEXT)._.elmo)
        nlp.replace_pipe("elmo", "elmo", config={"bilm": tiny, "layers": 0})
        assert np.array_equal(nlp(TEXT)._.elmo, other(TEXT)._.elmo)

    def test_the_extension_of_another_component_stays(self, tiny):
        """Oracle: the message; the other's values."""
        before = Token.remove_extension("elmo") if Token.has_extension("elmo") else None
        Token.set_extension("elmo", default="theirs")
        try:
            with pytest.raises(ValueError, match=r"Token\._\.elmo must be this component's.*remove_extension"):
                ElmoComponent(bilm=tiny)
            assert spacy.blank("en")("a")[0]._.elmo == "theirs"
        finally:
            Token.remove_extension("elmo")
            if before:
                Token.set_extension("elmo", getter=before[2])


class TestSimilarity:
    def test_it_is_the_cosine(self, tiny):
        """Oracle: NumPy, between documents, spans and tokens; 0 with white space."""
        doc = pipeline(tiny, similarity=True)(TEXT)
        other = pipeline(tiny, similarity=True)("It snows.")
        for ours, theirs in ((doc, other), (doc[0], doc[2]), (doc[0:3], other), (doc[0], other[0:2]), (doc, doc)):
            one, two = ours._.elmo, theirs._.elmo
            cosine = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
            assert ours.similarity(theirs) == pytest.approx(cosine, abs=1e-6)
        assert doc[1].is_space
        assert doc[1].similarity(doc[0]) == 0.0

    def test_a_word_without_a_sentence_has_none(self, tiny):
        """Oracle: the message, for a word of the vocabulary."""
        doc = pipeline(tiny, similarity=True)(TEXT)
        with pytest.raises(ValueError, match="but of a Lexeme, a word without a sentence"):
            doc[0].similarity(doc.vocab["snows"])

    def test_only_with_similarity_are_vectors_those_of_elmo(self, tiny):
        """Oracle: the vectors of the extension; without the option spaCy's own, of which a blank pipeline has none."""
        doc = pipeline(tiny, similarity=True)(TEXT)
        for what in (doc, doc[0], doc[0:3]):
            assert what.has_vector
            assert np.array_equal(what.vector, what._.elmo)
            assert what.vector_norm == pytest.approx(np.linalg.norm(what._.elmo), rel=1e-6)
        doc = pipeline(tiny)(TEXT)
        assert not doc.user_hooks
        assert not doc.has_vector

    @pytest.mark.parametrize("config", [{"pool": None}, {"layers": "all"}])
    def test_similarity_needs_one_vector(self, tiny, config):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="similarity needs one vector for each document"):
            pipeline(tiny, similarity=True, **config)


class TestFiles:
    def test_a_pipeline_saves_its_weights(self, elmo, tmp_path, tiny):
        """Oracle: the vectors; the folder of the biLM is removed."""
        model = tmp_path / "model"
        model.mkdir()
        elmo.bilm.save(model / "options.json", model / "weights.hdf5")
        nlp = pipeline(str(model), layers="top", pool="max")
        expected = nlp(TEXT)._.elmo
        nlp.to_disk(tmp_path / "pipeline")
        for file in model.iterdir():
            file.unlink()
        model.rmdir()
        again = spacy.load(tmp_path / "pipeline")
        assert np.array_equal(again(TEXT)._.elmo, expected)

    def test_bytes_have_the_weights(self, elmo, tmp_path):
        """Oracle: the vectors; the folder of the biLM has other weights then, or there is no folder."""
        model = tmp_path / "model"
        shutil.copytree(TINY_BILM, model)
        nlp = pipeline(str(model))
        expected, content = nlp(TEXT)._.elmo, nlp.to_bytes()
        shutil.rmtree(model)
        again = pipeline(str(model)).from_bytes(content)
        assert np.array_equal(again(TEXT)._.elmo, expected)
        without = pipeline(str(TINY_BILM), save_weights=False).to_bytes()
        assert len(without) < len(content) - 10_000
        with pytest.raises(ValueError, match="'elmo' needs weights, but these bytes have none"):
            again.from_bytes(without)
        assert pipeline(str(TINY_BILM), save_weights=False).from_bytes(content)(TEXT)._.elmo.shape == expected.shape

    def test_what_was_saved_stays_until_the_new_files_are_whole(self, tmp_path, tiny, monkeypatch):
        """Oracle: the files, after a disk that is full at the options, the last of them."""
        nlp = pipeline(tiny)
        nlp.to_disk(tmp_path / "pipeline")
        (tmp_path / "pipeline" / "elmo" / "notes.txt").write_text("mine")
        before = {path: path.read_bytes() for path in (tmp_path / "pipeline" / "elmo").iterdir()}
        nlp.get_pipe("elmo").elmo.bilm.requires_grad_(True).character_encoder.projection.bias.data.add_(1)
        full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
        with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
            patched.setattr("elmo_tasks.bilm.options.atomic_file", full)
            nlp.to_disk(tmp_path / "pipeline")
        assert {path: path.read_bytes() for path in (tmp_path / "pipeline" / "elmo").iterdir()} == before

    def test_the_weights_may_be_omitted(self, tmp_path, tiny):
        """Oracle: the files; the vectors, by the name in the config."""
        nlp = pipeline(tiny, save_weights=False)
        nlp.to_disk(tmp_path)
        assert not list(tmp_path.rglob("*.hdf5"))
        assert np.array_equal(spacy.load(tmp_path)(TEXT)._.elmo, nlp(TEXT)._.elmo)

    @pytest.mark.parametrize("missing", ["options.json", "weights.hdf5", ""])
    def test_without_its_weights_it_is_an_error(self, elmo, tmp_path, tiny, missing):
        """Oracle: the message, whatever biLM the name means by now; its remedy loads that one."""
        named = tmp_path / "named"
        shutil.copytree(tiny, named)
        pipeline(str(named)).to_disk(tmp_path / "pipeline")
        saved = tmp_path / "pipeline" / "elmo"
        shutil.rmtree(saved) if missing == "" else (saved / missing).unlink()
        message = rf"'elmo' was saved with its weights, but '{saved}' has no {missing}"
        with pytest.raises(FileNotFoundError, match=message):
            spacy.load(tmp_path / "pipeline")
        nlp = spacy.load(tmp_path / "pipeline", config={"components.elmo.save_weights": False})
        (expected,) = elmo.embed([["It", "rains"]], pool="mean")
        np.testing.assert_allclose(nlp("It rains")._.elmo, expected, rtol=0, atol=1e-6)

    def test_half_of_its_weights_is_an_error(self, tmp_path, tiny):
        """Oracle: the message, with the file."""
        pipeline(tiny).to_disk(tmp_path)
        weights = tmp_path / "elmo" / "weights.hdf5"
        os.truncate(weights, weights.stat().st_size // 2)
        with pytest.raises(ValueError, match=rf"{weights}: a weight file must be HDF5, but this one is .* truncated"):
            spacy.load(tmp_path)


class TestFactory:
    def test_spacy_finds_it_by_its_entry_point(self):
        """Oracle: `setup.cfg`."""
        config = configparser.ConfigParser()
        config.read(CHECKOUT / "setup.cfg")
        entry = config["options.entry_points"]["spacy_factories"].strip()
        assert entry == f"elmo = {ElmoComponent.__module__}:{ElmoComponent.__name__}"

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"pool": "sum"}, r"elmo -> pool\s+.*'sum' is not .*'mean', 'max', 'first-last'"),
            ({"layers": "best"}, r"elmo -> layers\s+.*'best' is not .*'mix', 'all', 'top'"),
            ({"layers": 9}, "layers must be"),
            ({"bilm": "smal"}, "must be one of small-open, .*'smal' is neither"),
        ],
    )
    def test_other_values_are_errors(self, tiny, config, message):
        """Oracle: the message, at the latest with the first document."""
        with pytest.raises(ValueError, match=message):
            pipeline(**{"bilm": tiny, **config})("a")
