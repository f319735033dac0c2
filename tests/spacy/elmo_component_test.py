import shutil
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin, Span, Token

from tests.paths import TINY_BILM

TEXT = "It  rains. Mr. Hill\nstays here.\n"
TINY = str(TINY_BILM)
SENTENCES = [["It", "rains", "."], ["Mr.", "Hill", "stays", "here", "."]]


@lru_cache
def blank() -> spacy.Language:
    return spacy.blank("en")


def pipeline(bilm: str, *, sentencizer: bool = True, **config: object) -> spacy.Language:
    # Shares one tokenizer, because making one takes longer than everything else here.
    nlp = type(blank())(vocab=blank().vocab, create_tokenizer=lambda nlp: blank().tokenizer)
    if sentencizer:
        nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"bilm": bilm, **config})
    return nlp


def words(item: Doc | Span) -> list[Token]:
    return [token for token in item if not token.is_space]


def vectors_of(tokens: list[Token]) -> np.ndarray:
    return np.stack([token._.elmo for token in tokens])


class TestVectors:
    def test_tokens_have_the_vectors_of_their_sentences(self, elmo):
        doc = pipeline(TINY)(TEXT)
        assert [token.text for token in words(doc)] == SENTENCES[0] + SENTENCES[1]
        expected = np.concatenate(elmo.embed(SENTENCES))
        np.testing.assert_allclose(vectors_of(words(doc)), expected, rtol=0, atol=1e-6)
        spaces = [token for token in doc if token.is_space]
        assert len(spaces) == 3
        assert not vectors_of(spaces).any()

    def test_without_sentences_a_document_is_one_sequence(self, elmo):
        doc = pipeline(TINY, sentencizer=False)(TEXT)
        (expected,) = elmo.embed([SENTENCES[0] + SENTENCES[1]])
        np.testing.assert_allclose(vectors_of(words(doc)), expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("pool", ["mean", "max", "first-last"])
    def test_spans_and_documents_have_the_pool_of_their_words(self, pool):
        doc = pipeline(TINY, pool=pool)(TEXT)
        sentences = list(doc.sents)
        for item in (doc, doc[:], doc[0:3], doc[4:9], doc[3:4], sentences[0], sentences[1]):
            vectors = vectors_of(words(item))
            half = vectors.shape[1] // 2
            expected = {
                "mean": vectors.mean(0),
                "max": vectors.max(0),
                "first-last": np.concatenate([vectors[-1, :half], vectors[0, half:]]),
            }
            np.testing.assert_allclose(item._.elmo, expected[pool], rtol=0, atol=1e-6)

    def test_without_pool_they_have_all_their_tokens(self):
        doc = pipeline(TINY, pool=None)(TEXT)
        for item in (doc, doc[2:6]):
            assert np.array_equal(item._.elmo, vectors_of(list(item)))

    def test_the_settings_match_elmo(self, elmo):
        for config in (
            {"layers": "all"},
            {"layers": 1, "gamma": 2.0},
            {"weights": [0.0, 1.0, -1.0]},
        ):
            doc = pipeline(TINY, **config)("It rains.")
            (expected,) = elmo.embed(SENTENCES[:1], **config)
            np.testing.assert_allclose(doc[1]._.elmo, expected[..., 1, :], rtol=0, atol=1e-6)
            np.testing.assert_allclose(doc._.elmo, expected.mean(-2), rtol=0, atol=1e-6)

    @pytest.mark.parametrize("text", ["", " \n "])
    def test_a_document_without_words_has_zeros(self, elmo, text):
        doc = pipeline(TINY)(text)
        assert doc._.elmo.shape == (elmo.dim,)
        assert not doc._.elmo.any()
        assert pipeline(TINY, pool=None)(text)._.elmo.shape == (len(doc), elmo.dim)


class TestPipe:
    def test_a_stream_gives_the_vectors_of_single_documents(self):
        nlp = pipeline(TINY, batch_tokens=12)
        texts = [TEXT, "", "Yes.", "  ", "One. Two. Three, four.", TEXT] * 3
        numbered = zip(texts, range(len(texts)), strict=True)
        stream = list(nlp.pipe(numbered, as_tuples=True, batch_size=2))
        assert [number for _, number in stream] == list(range(len(texts)))
        for doc, number in stream:
            expected = nlp(texts[number])
            assert doc.text == expected.text
            np.testing.assert_allclose(doc._.elmo, expected._.elmo, rtol=0, atol=1e-6)

    def test_the_error_handler_gets_only_the_bad_document(self):
        failures = []

        def note(name, component, docs, error):
            failures.append((name, [doc.text for doc in docs]))

        nlp = pipeline(TINY)
        nlp.set_error_handler(note)
        bad = Doc(nlp.vocab, words=["Ann", "<S>"])
        docs = list(nlp.pipe(["Ann sang.", bad, "Bob sang."]))
        assert [doc.text for doc in docs] == ["Ann sang.", "Bob sang."]
        assert docs[0]._.elmo.any() and docs[1]._.elmo.any()
        assert failures == [("elmo", ["Ann <S> "])]


class TestWhereTheVectorsAre:
    def test_a_document_from_a_file_has_its_vectors(self):
        nlp = pipeline(TINY, layers="all")
        doc = nlp(TEXT)
        data = DocBin(store_user_data=True, docs=[doc]).to_bytes()
        (read,) = DocBin(store_user_data=True).from_bytes(data).get_docs(nlp.vocab)
        assert np.array_equal(read._.elmo, doc._.elmo)
        assert np.array_equal(read[2]._.elmo, doc[2]._.elmo)
        assert np.array_equal(read[1:4]._.elmo, doc[1:4]._.elmo)

    def test_a_document_without_vectors_says_how_to_get_them(self):
        nlp = pipeline(TINY, layers="all")
        doc = nlp(TEXT)
        (read,) = DocBin(docs=[doc]).get_docs(nlp.vocab)
        joined = Doc.from_docs([doc, doc])
        for item in (nlp.make_doc(TEXT), doc[:].as_doc(), joined, read, read[0]):
            with pytest.raises(ValueError, match="run a pipeline with 'elmo'"):
                item._.elmo  # noqa: B018

    @pytest.mark.weekly
    def test_a_new_process_can_read_the_file(self, tmp_path):
        DocBin(store_user_data=True, docs=[pipeline(TINY)(TEXT)]).to_disk(tmp_path / "docs.spacy")
        code = (
            "import sys, spacy; from spacy.tokens import DocBin; vocab = spacy.blank('en').vocab\n"
            "print(*(doc._.elmo.shape for doc in DocBin().from_disk(sys.argv[1]).get_docs(vocab)))"
        )
        command = [sys.executable, "-c", code, tmp_path / "docs.spacy"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        assert run.stdout == "(16,)\n"

    def test_a_second_component_gives_a_warning(self):
        with pytest.warns(UserWarning, match="last"):
            pipeline(TINY).add_pipe("elmo", name="second", config={"bilm": TINY})


class TestSimilarity:
    def test_it_is_the_cosine(self):
        doc = pipeline(TINY, similarity=True)(TEXT)
        other_doc = pipeline(TINY, similarity=True)("It snows.")
        for item, other in (
            (doc, other_doc),
            (doc[0], doc[2]),
            (doc[0:3], other_doc),
            (doc[0], other_doc[0:2]),
            (doc, doc),
        ):
            norms = np.linalg.norm(item._.elmo) * np.linalg.norm(other._.elmo)
            cosine = item._.elmo @ other._.elmo / norms
            assert item.similarity(other) == pytest.approx(cosine, abs=1e-6)
        assert doc[1].is_space
        assert doc[1].similarity(doc[0]) == 0.0

    def test_vectors_are_elmo_vectors_only_with_similarity(self):
        doc = pipeline(TINY, similarity=True)(TEXT)
        for item in (doc, doc[0], doc[0:3]):
            assert item.has_vector
            assert np.array_equal(item.vector, item._.elmo)
            assert item.vector_norm == pytest.approx(np.linalg.norm(item._.elmo), rel=1e-6)
        doc = pipeline(TINY)(TEXT)
        assert not doc.user_hooks
        assert not doc.has_vector


class TestFiles:
    def test_a_pipeline_saves_its_weights(self, tmp_path):
        model = tmp_path / "model"
        shutil.copytree(TINY_BILM, model)
        nlp = pipeline(str(model), layers="top", pool="max")
        expected = nlp(TEXT)._.elmo
        content = nlp.to_bytes()
        nlp.to_disk(tmp_path / "pipeline")
        shutil.rmtree(model)
        from_disk = spacy.load(tmp_path / "pipeline")
        assert np.array_equal(from_disk(TEXT)._.elmo, expected)
        from_bytes = pipeline(str(model), layers="top", pool="max").from_bytes(content)
        assert np.array_equal(from_bytes(TEXT)._.elmo, expected)
        nlp_without_weights = pipeline(TINY, save_weights=False)
        assert len(nlp_without_weights.to_bytes()) < len(content) - 10_000
        nlp_without_weights.from_bytes(content)
        assert nlp_without_weights(TEXT)._.elmo.shape == expected.shape

    @pytest.mark.parametrize("content", [[b"a"], {"options.json": 1}, 1])
    def test_bytes_of_something_else_are_an_error_of_the_component(self, content):
        with pytest.raises(ValueError, match="ElmoComponent"):
            pipeline(TINY).get_pipe("elmo").from_bytes(srsly.msgpack_dumps(content))

    def test_the_weights_may_be_omitted(self, tmp_path):
        nlp = pipeline(TINY, save_weights=False)
        nlp.to_disk(tmp_path)
        assert not list(tmp_path.rglob("*.hdf5"))
        assert np.array_equal(spacy.load(tmp_path)(TEXT)._.elmo, nlp(TEXT)._.elmo)
