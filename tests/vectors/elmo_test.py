import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks import Elmo
from elmo_tasks.bilm import Bilm, LayerCache
from tests.bilm.helpers import batches, layers_alone, random_bilm, save
from tests.paths import SHIPPED_BILM, bilm_files
from tests.vectors.helpers import assert_all_equal

SENTENCES = [
    ["The", "cat", "sat", "."],
    [],
    ["Encyclopædia", "😀", "The"],
    ["x" * 60],
    ["The", "cat"],
]


def without_refused_words(batch: list[list[str]]) -> list[list[str]]:
    sentences = []
    for words in batch:
        sentences.append([word for word in words if word.strip() and word not in ("<S>", "</S>")])
    return sentences


BATCHES = batches(max_size=7).map(without_refused_words)


@pytest.fixture(scope="module")
def elmo(bilm: Bilm) -> Elmo:
    return Elmo(bilm)


@pytest.mark.slow
def test_threads_and_a_forked_process_compute_the_same_and_keep_their_settings(elmo):
    expected = elmo.embed(SENTENCES, pool="mean")
    n_threads = torch.get_num_threads()

    def embed(number: int) -> list[np.ndarray]:
        vectors = elmo.embed(SENTENCES, pool="mean")
        assert torch.get_num_threads() == n_threads
        return vectors

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(embed, range(24)))
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        results.append(pool.submit(elmo.embed, SENTENCES, pool="mean").result(timeout=120))
    for vectors in results:
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


class TestEmbed:
    @given(BATCHES, st.sampled_from([1, 7, 40, 4096]))
    def test_layers_do_not_depend_on_the_other_sentences(self, elmo, bilm, sentences, batch_tokens):
        arrays = elmo.embed(sentences, layers="all", batch_tokens=batch_tokens)
        assert len(arrays) == len(sentences)
        for array, sentence in zip(arrays, sentences, strict=True):
            assert array.dtype == np.float32
            assert array.shape == (3, len(sentence), 12)
            np.testing.assert_allclose(array, layers_alone(bilm, sentence), rtol=0, atol=1e-6)

    def test_the_arguments_match_the_selection(self, elmo, bilm):
        layers = layers_alone(bilm, SENTENCES[0])
        weights = [0.0, 1.0, -1.0]
        shares = np.exp(weights) / np.exp(weights).sum()
        mixed = np.tensordot(shares, layers, 1)
        first_and_last = np.concatenate([layers[1, -1, :6], layers[1, 0, 6:]])
        cases = [
            ({}, layers.mean(0)),
            ({"weights": weights, "gamma": 2.0}, 2.0 * mixed),
            ({"layers": "top"}, layers[2]),
            ({"layers": 1}, layers[1]),
            ({"layers": "top", "pool": "mean"}, layers[2].mean(0)),
            ({"layers": "all", "pool": "max"}, layers.max(1)),
            ({"layers": 1, "pool": "first-last"}, first_and_last),
        ]
        for arguments, expected in cases:
            vectors = elmo.embed(SENTENCES, **arguments)
            np.testing.assert_allclose(vectors[0], expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize(
        ("arguments", "shape"),
        [
            ({}, (0, 12)),
            ({"layers": "all"}, (3, 0, 12)),
            ({"pool": "mean"}, (12,)),
            ({"pool": "max"}, (12,)),
            ({"pool": "first-last", "layers": "all"}, (3, 12)),
        ],
    )
    @pytest.mark.parametrize("sentences", [[[]], [[], []], [["a", "b"], []]])
    def test_a_sentence_without_words_keeps_its_place(self, elmo, sentences, arguments, shape):
        vectors = elmo.embed(sentences, **arguments)
        assert len(vectors) == len(sentences)
        assert vectors[-1].shape == shape
        assert not vectors[-1].any()

    def test_tensors_have_the_numbers_of_the_arrays(self, elmo):
        for arguments in ({}, {"pool": "max"}, {"layers": "all"}):
            arrays = elmo.embed(SENTENCES, **arguments)
            tensors = elmo.embed(SENTENCES, output="torch", **arguments)
            for tensor, array in zip(tensors, arrays, strict=True):
                assert isinstance(tensor, torch.Tensor)
                assert not tensor.requires_grad
                assert np.array_equal(tensor.numpy(), array)

    def test_a_layer_cache_is_used(self, tmp_path):
        bilm = random_bilm()
        elmo = Elmo(bilm, layer_cache=LayerCache(tmp_path / "cache"))
        runs = []
        bilm.register_forward_pre_hook(lambda module, inputs: runs.append(inputs))
        for _ in range(2):
            assert_all_equal(elmo.embed(SENTENCES), Elmo(random_bilm()).embed(SENTENCES))
            assert len(runs) == 1


@pytest.mark.parametrize("batch_tokens", [1, 300, 4096])
def test_the_included_bilm_gives_the_same_vectors_in_any_order_and_batch(news, batch_tokens):
    """Up to the rounding of float32; AllenNLP's vectors differ by up to 0.76."""
    elmo = Elmo.from_pretrained(device="cpu")
    expected = elmo.embed(news)
    vectors = elmo.embed(news[::-1], batch_tokens=batch_tokens)
    for array, expected_array in zip(vectors[::-1], expected, strict=True):
        np.testing.assert_allclose(array, expected_array, rtol=0, atol=1e-5)


class TestEmbedIter:
    def test_gradients_stay_on_for_the_caller(self, elmo):
        for _ in elmo.embed_iter(SENTENCES):
            assert torch.is_grad_enabled()


class TestFromPretrained:
    def test_a_folder_or_two_files_give_the_bilm(self, bilm, tmp_path):
        files = save(bilm, tmp_path)
        expected = Elmo(bilm).embed(SENTENCES[:1])[0]
        for elmo in (
            Elmo.from_pretrained(tmp_path),
            Elmo.from_pretrained(str(tmp_path)),
            Elmo.from_files(*files),
        ):
            assert np.array_equal(elmo.embed(SENTENCES[:1])[0], expected)
            assert not any(weight.requires_grad for weight in elmo.bilm.parameters())

    def test_the_small_bilm_is_included(self):
        elmo = Elmo.from_pretrained()
        assert (elmo.dim, elmo.n_layers) == (256, 3)
        bilm = Bilm.from_files(*bilm_files(SHIPPED_BILM))
        assert torch.equal(elmo.bilm.forward_layers[1].kernel, bilm.forward_layers[1].kernel)


@pytest.mark.parametrize(
    ("sentences", "arguments", "names"),
    [
        ({"text": ["a b"]}, {}, "table"),
        ([["a", "", "b"]], {}, "'' in"),
        ([["a"], ["b c"], "", ["\t"]], {}, "t' in"),
        ([["<S>", "a", "</S>"]], {}, "'<S>' in"),
        ([["Ann", 7]], {}, "7 in"),
        ([["a", ["b"]]], {}, "expected"),
        ([b"a"], {}, "b'a'"),
        (["a", None], {}, r"got None \(sentence 1\)"),
        ([float("nan")], {}, "nan"),
        ([["a"]], {"layers": "best"}, "best"),
        ([["a"]], {"layers": 3}, "3"),
        ([["a"]], {"pool": "sum"}, "sum"),
        ([["a"]], {"weights": [1.0]}, "3 weights"),
        ([["a"]], {"weights": [0.0, float("nan"), 0.0]}, "nan"),
        ([["a"]], {"gamma": float("inf")}, "inf"),
        ([["a"]], {"batch_tokens": -1}, "batch_tokens, got -1"),
        ([["a"]], {"batch_tokens": "many"}, "many"),
    ],
)
def test_an_error_names_bad_input(elmo, sentences, arguments, names):
    with pytest.raises(ValueError, match=names):
        elmo.embed(sentences, **arguments)


@pytest.mark.parametrize(
    ("documents", "names"), [({"text": ["a b"]}, "table"), ([float("nan")], "nan")]
)
def test_an_error_names_bad_documents(elmo, documents, names):
    with pytest.raises(ValueError, match=names):
        elmo.embed_documents(documents)


def test_a_batch_that_does_not_fit_in_memory_is_halved(elmo, monkeypatch):
    expected = elmo.embed(SENTENCES)
    forward = Bilm.forward

    def limited(bilm, sentences):
        if len(sentences) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return forward(bilm, sentences)

    monkeypatch.setattr(Bilm, "forward", limited)
    for array, expected_array in zip(elmo.embed(SENTENCES), expected, strict=True):
        np.testing.assert_allclose(array, expected_array, rtol=0, atol=1e-5)
