import numpy as np
import pytest

from elmo_tasks.bilm import LayerCache
from elmo_tasks.bilm.characters import word_to_character_ids

SENTENCES = [["The", "cat"], ["The", "Cat"], ["cat", "The"], ["The"], ["The", "cat", "."], []]


def ids(*words: str) -> np.ndarray:
    return np.array([word_to_character_ids(word) for word in words], np.int64).reshape(-1, 50)


def layers(n_words: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((3, n_words, 8), dtype=np.float32) * 10


def read(cache: LayerCache, *words: str, model: bytes = b"model") -> np.ndarray | None:
    """The layers that are found for a sentence."""
    target = np.zeros((3, len(words), 8), np.float32)
    return target if cache.read(model, [ids(*words)], [target]) == [True] else None


class TestLayerCache:
    def test_every_sentence_has_layers_of_its_own(self, tmp_path):
        """Oracle: the layers that were written for each; case, order and length count."""
        cache = LayerCache(tmp_path)
        written = [layers(len(words), seed) for seed, words in enumerate(SENTENCES)]
        cache.write(b"model", [ids(*words) for words in SENTENCES], written)
        for words, expected in zip(SENTENCES, written, strict=True):
            assert np.array_equal(read(cache, *words), expected)
        assert read(cache, "cat") is None

    def test_ids_of_the_same_bytes_are_other_sentences(self, tmp_path):
        """Oracle: the layers that were written: of two ids in two bytes each or one in four, and of words of pieces."""
        cache = LayerCache(tmp_path)
        sentences = [np.array(ids) for ids in ([[5, 1]], [[65536 + 5]], [[1, 2]], [[1], [2]])]
        written = [layers(len(sentence), seed) for seed, sentence in enumerate(sentences)]
        cache.write(b"model", sentences, written)
        for sentence, expected in zip(sentences, written, strict=True):
            target = np.zeros_like(expected)
            assert cache.read(b"model", [sentence], [target]) == [True]
            assert np.array_equal(target, expected)

    def test_every_model_has_layers_of_its_own(self, tmp_path):
        """Oracle: by hand."""
        cache = LayerCache(tmp_path)
        for model in (b"one", b"other"):
            assert read(cache, "The", "cat", model=model) is None
            cache.write(model, [ids("The", "cat")], [layers(2, seed=len(model))])
        for model in (b"one", b"other"):
            assert np.array_equal(read(cache, "The", "cat", model=model), layers(2, seed=len(model)))

    def test_another_cache_of_the_folder_knows_them(self, tmp_path):
        """Oracle: by hand; one of another type does not."""
        LayerCache(tmp_path).write(b"model", [ids("The")], [layers(1)])
        assert np.array_equal(read(LayerCache(str(tmp_path)), "The"), layers(1))
        assert read(LayerCache(tmp_path, dtype="float16"), "The") is None

    def test_float32_is_exact(self, tmp_path):
        """Oracle: the bits; the smallest and the largest number, and minus zero."""
        cache = LayerCache(tmp_path)
        special = np.float32([1e-45, 3.4e38, -0.0, 1 / 3])
        written = np.resize(special, (3, 2, 8))
        assert cache.rounded(written) is written
        cache.write(b"model", [ids("a", "b")], [written])
        assert read(cache, "a", "b").tobytes() == written.tobytes()

    def test_float16_is_rounded(self, tmp_path):
        """Oracle: the layers, with the relative error of 11 bits; and NumPy's own rounding, exactly."""
        cache = LayerCache(tmp_path, dtype="float16")
        written = layers(5)
        cache.write(b"model", [ids(*"abcde")], [cache.rounded(written)])
        found = read(cache, *"abcde")
        np.testing.assert_allclose(found, written, rtol=2**-11, atol=1e-7)
        assert np.array_equal(found, written.astype(np.float16).astype(np.float32))
        assert np.array_equal(found, cache.rounded(written))

    def test_what_float16_cannot_hold_is_not_kept(self, tmp_path):
        """Oracle: by hand: 65,520 and more would be infinite."""
        cache = LayerCache(tmp_path, dtype="float16")
        large = layers(2)
        large[1, 1, 3] = 65_520
        assert cache.rounded(large) is large
        cache.write(b"model", [ids("a", "b"), ids("c")], [cache.rounded(large), cache.rounded(layers(1))])
        assert read(cache, "a", "b") is None
        assert read(cache, "c") is not None

    @pytest.mark.parametrize("dtype", ["float64", "int8", None])
    def test_another_dtype_is_an_error(self, tmp_path, dtype):
        """Oracle: the message says rule and value."""
        with pytest.raises(ValueError, match=rf"one of \('float32', 'float16'\), but is {dtype!r}"):
            LayerCache(tmp_path, dtype=dtype)

    def test_nothing_is_made_before_the_first_use(self, tmp_path):
        """Oracle: the folder, which an archive that is only looked at must not make."""
        cache = LayerCache(tmp_path / "cache")
        assert not (tmp_path / "cache").exists()
        assert read(cache, "The") is None
        assert (tmp_path / "cache").is_dir()
