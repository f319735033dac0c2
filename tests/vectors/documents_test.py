import itertools
from functools import partial

import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.bilm import Bilm
from elmo_tasks.vectors.batching import embed_groups
from tests.vectors.helpers import recorded

DOCUMENTS = [[["a", "b"], [], ["c"]], [], [["d"]], [[]], [["e", "f", "g"], ["a", "b"]]]


@pytest.fixture(scope="module")
def elmo(bilm: Bilm) -> Elmo:
    return Elmo(bilm, tokenizer=str.split)


class TestEmbedDocuments:
    @pytest.mark.parametrize("batch_tokens", [1, 4096])
    @pytest.mark.parametrize("layers", ["mix", "all"])
    def test_a_document_has_the_vectors_of_its_sentences(self, elmo, layers, batch_tokens):
        arrays = elmo.embed_documents(DOCUMENTS, layers=layers, batch_tokens=batch_tokens)
        assert len(arrays) == len(DOCUMENTS)
        for array, document in zip(arrays, DOCUMENTS, strict=True):
            expected = np.concatenate(elmo.embed([*document, []], layers=layers), -2)
            assert array.shape == expected.shape
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-6)

    def test_a_whole_document_is_one_sequence(self, elmo):
        arrays = elmo.embed_documents(DOCUMENTS, whole=True)
        for array, document in zip(arrays, DOCUMENTS, strict=True):
            words = list(itertools.chain.from_iterable(document))
            (expected,) = elmo.embed([words])
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-6)
        arrays_by_sentence = elmo.embed_documents(DOCUMENTS)
        assert not np.allclose(arrays[-1], arrays_by_sentence[-1], atol=1e-3)

    @pytest.mark.parametrize("pool", ["mean", "max", "first-last"])
    def test_a_pool_is_over_all_words(self, elmo, pool):
        arrays = elmo.embed_documents(DOCUMENTS)
        vectors = elmo.embed_documents(DOCUMENTS, pool=pool)
        for vector, array in zip(vectors, arrays, strict=True):
            if not len(array):
                expected = np.zeros(12)
            elif pool == "first-last":
                expected = np.concatenate([array[-1, :6], array[0, 6:]])
            elif pool == "mean":
                expected = array.mean(0)
            else:
                expected = array.max(0)
            np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-6)

    def test_a_text_is_split_into_sentences(self, bilm):
        elmo = Elmo(bilm)
        words = [["It", "rains", "."], ["Do", "n't", "go", "!"]]
        (expected,) = elmo.embed_documents([words])
        for same_document in (
            "It rains. \n Don't go!  ",
            ["It rains .", words[1]],
            "It rains .\n \nDo n't go !",
        ):
            assert np.array_equal(elmo.embed_documents([same_document])[0], expected)
        empty_arrays = elmo.embed_documents(["", " \n"])
        assert [array.shape for array in empty_arrays] == [(0, 12), (0, 12)]

    def test_no_more_is_read_than_is_needed(self, elmo):
        read = []
        documents = recorded(itertools.repeat([["a"] * 8, ["b"] * 8]), read)
        vectors = elmo.embed_documents_iter(documents, batch_tokens=20)
        for _ in range(50):
            next(vectors)
        assert 50 <= len(read) <= 60


class TestEmbedGroups:
    def test_the_keys_come_with_their_vectors(self, elmo):
        groups = zip("abcde", DOCUMENTS, strict=True)
        lengths = {}
        for key, array in embed_groups(partial(elmo.embed_iter, batch_tokens=3), groups):
            lengths[key] = len(array)
        assert list(lengths.items()) == [("a", 3), ("b", 0), ("c", 1), ("d", 0), ("e", 5)]

    @pytest.mark.parametrize(
        ("batch_size", "n_read"), [(1, [1, 2, 3, 4, 5]), (2, [2, 2, 4, 4, 5]), (None, [5] * 5)]
    )
    def test_no_more_is_read_than_the_batch_size(self, elmo, batch_size, n_read):
        read = []
        groups = recorded(enumerate(DOCUMENTS), read)
        n_read_by_key = {}
        for key, array in embed_groups(elmo.embed_iter, groups, batch_size):
            assert len(array) == sum(map(len, DOCUMENTS[key]))
            n_read_by_key[key] = len(read)
        assert n_read_by_key == dict(enumerate(n_read))
