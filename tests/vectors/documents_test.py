import itertools
from functools import partial

import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.bilm import Bilm
from elmo_tasks.vectors.batching import embed_groups

DOCUMENTS = [[["a", "b"], [], ["c"]], [], [["d"]], [[]], [["e", "f", "g"], ["a", "b"]]]


@pytest.fixture(scope="module")
def elmo(bilm: Bilm) -> Elmo:
    return Elmo(bilm, tokenizer=str.split)


class TestEmbedDocuments:
    @pytest.mark.parametrize("batch_tokens", [1, 4096])
    @pytest.mark.parametrize("layers", ["mix", "all"])
    def test_a_document_has_the_vectors_of_its_sentences(self, elmo, layers, batch_tokens):
        found = elmo.embed_documents(DOCUMENTS, layers=layers, batch_tokens=batch_tokens)
        assert len(found) == len(DOCUMENTS)
        for array, document in zip(found, DOCUMENTS, strict=True):
            expected = np.concatenate(elmo.embed([*document, []], layers=layers), -2)
            assert array.shape == expected.shape
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-6)

    def test_a_whole_document_is_one_sequence(self, elmo):
        found = elmo.embed_documents(DOCUMENTS, whole=True)
        for array, document in zip(found, DOCUMENTS, strict=True):
            (expected,) = elmo.embed([[word for sentence in document for word in sentence]])
            np.testing.assert_allclose(array, expected, rtol=0, atol=1e-6)
        assert not np.allclose(found[-1], elmo.embed_documents(DOCUMENTS)[-1], atol=1e-3)

    @pytest.mark.parametrize("pool", ["mean", "max", "first-last"])
    def test_a_pool_is_over_all_words(self, elmo, pool):
        words = elmo.embed_documents(DOCUMENTS)
        for vector, array in zip(elmo.embed_documents(DOCUMENTS, pool=pool), words, strict=True):
            if not len(array):
                expected = np.zeros(12)
            elif pool == "first-last":
                expected = np.concatenate([array[-1, :6], array[0, 6:]])
            else:
                expected = array.mean(0) if pool == "mean" else array.max(0)
            np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-6)

    def test_a_text_is_split_into_sentences(self, bilm):
        elmo = Elmo(bilm)
        words = [["It", "rains", "."], ["Do", "n't", "go", "!"]]
        (expected,) = elmo.embed_documents([words])
        for same in (
            "It rains. \n Don't go!  ",
            ["It rains .", words[1]],
            "It rains .\n \nDo n't go !",
        ):
            assert np.array_equal(elmo.embed_documents([same])[0], expected)
        assert [array.shape for array in elmo.embed_documents(["", " \n"])] == [(0, 12)] * 2

    def test_no_more_is_read_than_is_needed(self, elmo):
        read = []
        corpus = (read.append(index) or [["a"] * 8, ["b"] * 8] for index in itertools.count())
        vectors = elmo.embed_documents_iter(corpus, batch_tokens=20)
        assert len([next(vectors) for _ in range(50)]) == 50
        assert 50 <= len(read) <= 60


class TestEmbedGroups:
    def test_the_keys_come_with_their_vectors(self, elmo):
        found = list(
            embed_groups(
                partial(elmo.embed_iter, batch_tokens=3), zip("abcde", DOCUMENTS, strict=True)
            )
        )
        assert [key for key, _ in found] == list("abcde")
        assert [len(array) for _, array in found] == [3, 0, 1, 0, 5]

    @pytest.mark.parametrize(
        ("batch_size", "n_read"), [(1, [1, 2, 3, 4, 5]), (2, [2, 2, 4, 4, 5]), (None, [5] * 5)]
    )
    def test_no_more_is_read_than_the_batch_size(self, elmo, batch_size, n_read):
        read: list[int] = []
        groups = (
            read.append(number) or (number, document) for number, document in enumerate(DOCUMENTS)
        )
        found = [
            (key, len(array), len(read))
            for key, array in embed_groups(elmo.embed_iter, groups, batch_size)
        ]
        assert found == list(zip(range(5), [3, 0, 1, 0, 5], n_read, strict=True))
