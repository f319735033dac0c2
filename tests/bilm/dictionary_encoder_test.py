"""Tests of biLMs with dictionaries: what is theirs alone, and what they have in common with all others."""

import pickle

import numpy as np
import pytest
import torch

from elmo_tasks.bilm import Bilm, BilmOptions, CachedBilm, LayerCache
from elmo_tasks.bilm.characters import sentences_to_character_ids
from elmo_tasks.bilm.code_points import code_points_to_words
from elmo_tasks.bilm.options import DictionaryOptions
from tests.bilm.helpers import random_bilm
from tests.bilm.many_langs.models import CHARACTERS, SENTENCES, WORDS, write_model


@pytest.fixture(scope="module")
def bilm(tmp_path_factory) -> Bilm:
    folder = write_model(tmp_path_factory.mktemp("model"))
    return Bilm.from_files(folder / "config.json", folder / "encoder.pkl").requires_grad_(False)


def assert_same(found, expected):
    assert all(torch.equal(one, other) for one, other in zip(found.layers, expected.layers, strict=True))


class TestBilm:
    @pytest.mark.parametrize("name", ["weights.hdf5", "weights.safetensors"])
    def test_it_is_read_as_it_was_written(self, bilm, tmp_path, name):
        """Oracle: the layers, bit for bit; the keys of both dictionaries."""
        bilm.save(tmp_path / "options.json", tmp_path / name)
        # Frozen as `bilm`: with gradients other products are called, which round in another way on some processors.
        again = Bilm.from_files(tmp_path / "options.json", tmp_path / name).requires_grad_(False)
        assert_same(again(SENTENCES), bilm(SENTENCES))
        encoder = again.character_encoder
        assert [list(keys._rows) for keys in (encoder.characters, encoder.words)] == [CHARACTERS, WORDS]

    def test_its_state_has_the_dictionaries(self, bilm):
        """Oracle: the layers, of a biLM made from options alone, as in an archive; and of a copy."""
        fresh = Bilm(bilm.options).requires_grad_(False)
        fresh.load_state_dict(bilm.state_dict())
        assert_same(fresh(SENTENCES), bilm(SENTENCES))
        assert_same(pickle.loads(pickle.dumps(bilm))(SENTENCES), bilm(SENTENCES))

    def test_ids_are_as_good_as_words(self, bilm):
        """Oracle: the layers of the words."""
        assert_same(bilm(bilm.word_rows.batch(SENTENCES)), bilm(SENTENCES))

    def test_the_cache_tells_all_characters_apart(self, bilm, tmp_path):
        """Oracle: the biLM; two characters 65,536 code points apart are equal in two bytes."""
        cached = CachedBilm(bilm, LayerCache(tmp_path))
        for word in ("나", chr(ord("나") + 65536), "나"):
            assert_same(cached([[word]]), bilm([[word]]))
        assert not torch.equal(bilm([["나"]]).layers[0], bilm([[chr(ord("나") + 65536)]]).layers[0])

    def test_without_its_dictionaries_it_reads_nothing(self, bilm):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="must have the key <oov>, but has 0 others: load one that was trained"):
            Bilm(bilm.options)(SENTENCES)

    def test_ids_of_the_other_kind_are_refused(self, bilm):
        """Oracle: the messages name the token indexer. Both kinds may have 50 ids a word."""
        sizes = DictionaryOptions(n_words=9, word_dim=3)
        wide = BilmOptions(cell_dim=4, projection_dim=3, character_dim=0, filters=(), n_highway=0, dictionaries=sizes)
        with pytest.raises(ValueError, match="'elmo' with unicode_characters makes them"):
            Bilm(wide)(sentences_to_character_ids([["a"]]))
        with pytest.raises(
            ValueError, match=r"but have \(1, 1, 50\): the token indexer 'elmo' with unicode_characters 10"
        ):
            bilm(sentences_to_character_ids([["a"]]))
        with pytest.raises(ValueError, match="the token indexers 'elmo' and 'elmo_characters' make them"):
            random_bilm()(Bilm(wide).word_rows.batch([["a"]]))

    def test_it_learns_as_others_do(self, bilm):
        """Oracle: autograd: each parameter of a word that is in the batch has a gradient."""
        trained = Bilm(bilm.options)
        trained.load_state_dict(bilm.state_dict())
        sum(layer.square().sum() for layer in trained(SENTENCES).layers).backward()
        assert all(weight.grad is not None and weight.grad.any() for weight in trained.parameters())


class TestReadWeights:
    @pytest.mark.parametrize(
        ("key", "content", "message"),
        [
            ("words", b"a\nb", "must hold 9 different keys by the options, but holds 2"),
            ("words", b"a\n" * 9, "must hold 9 different keys"),
            ("characters", b"\xff", "must be UTF-8, but"),
            ("words", "\n".join("abcdefghi").encode(), "must have the key '<bos>', but has not"),
            ("words", None, "keys that the options ask for are missing, the first is 'dictionaries/words'"),
            ("characters", np.zeros(4, np.float32), "must be an array of bytes in the file, but holds float32"),
        ],
    )
    def test_a_dictionary_that_does_not_fit_is_named(self, bilm, tmp_path, key, content, message):
        """Oracle: the rule in the message."""
        import h5py

        bilm.save(tmp_path / "options.json", tmp_path / "weights.hdf5")
        with h5py.File(tmp_path / "weights.hdf5", "r+") as file:
            del file[f"dictionaries/{key}"]
            if content is not None:
                array = np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content
                file.create_dataset(f"dictionaries/{key}", data=array)
        with pytest.raises(ValueError, match=message):
            Bilm.from_files(tmp_path / "options.json", tmp_path / "weights.hdf5")

    def test_weights_with_dictionaries_need_options_with_them(self, bilm, tmp_path):
        """Oracle: the message names what the options lack."""
        bilm.save(tmp_path / "options.json", tmp_path / "weights.hdf5")
        random_bilm().save(tmp_path / "other.json", tmp_path / "other.hdf5")
        with pytest.raises(ValueError, match=r"weights\.hdf5: the file holds 'dictionaries/characters', which"):
            Bilm.from_files(tmp_path / "other.json", tmp_path / "weights.hdf5")


class TestCodePoints:
    @pytest.mark.parametrize("row", [[259, 98, 260, 261], [300, 302, 0, 0], [300, 5, 301, 0], [0, 0, 0, 0]])
    def test_what_is_no_word_is_refused(self, row):
        """Oracle: the message; a row of the public scheme, and rows without an end or with ids of none."""
        with pytest.raises(ValueError, match="the ids of this biLM must be those of code points between 300 and 301"):
            code_points_to_words(np.array([row]))
