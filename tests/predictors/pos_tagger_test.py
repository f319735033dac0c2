import random
from pathlib import Path

import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.predictors.pos_tagger import PosTagger


class TestDamage:
    """Without the biLM, whose files have tests of their own."""

    @pytest.fixture(autouse=True)
    def no_bilm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Elmo, "from_pretrained", lambda *args: None)

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        rng = np.random.default_rng(0)
        weight, bias = rng.normal(size=(3, 256)).astype(np.float32), rng.normal(size=3)
        np.savez(tmp_path / "tagger.npz", weight=weight, bias=bias, tags=np.array(["A", "B", "C"]), layer=2)
        return tmp_path / "tagger.npz"

    def test_no_flipped_bit_and_no_cut_goes_unseen(self, path):
        """Oracle: an error that names the file, or, in what zip files say twice, the same arrays."""
        whole, places = path.read_bytes(), random.Random(0)
        expected = PosTagger(path).__dict__
        damages = [whole[:size] for size in (0, 1, 100, len(whole) // 2, len(whole) - 30, len(whole) - 1)]
        for _ in range(60):
            flipped = bytearray(whole)
            # Half of them in the directory at the end, where the raw errors were.
            place = places.randrange(len(whole)) if places.random() < 0.5 else -places.randrange(1, 300)
            flipped[place] ^= 1 << places.randrange(8)
            damages.append(bytes(flipped))
        for damaged in damages:
            path.write_bytes(damaged)
            try:
                found = PosTagger(path).__dict__
            except ValueError as error:
                assert str(error).startswith(f"{path} must be a tagger as fixtures/make_pos_tagger.py writes it, but")
            else:
                for name, value in expected.items():
                    np.testing.assert_array_equal(found[name], value)

    @pytest.mark.parametrize(
        "arrays",
        [
            {"weight": np.zeros((2, 4)), "bias": np.zeros(2), "tags": np.array(["A", "B"])},
            {"weight": np.zeros((2, 4)), "bias": np.zeros(3), "tags": np.array(["A", "B"]), "layer": 0},
            {"weight": np.zeros(2), "bias": np.zeros(2), "tags": np.array(["A", "B"]), "layer": 0},
            {"weight": np.zeros((2, 4)), "bias": np.zeros(2), "tags": np.array(["A", 1], object), "layer": 0},
            {"weight": np.zeros((2, 4)), "bias": np.zeros(2), "tags": np.array("A"), "layer": [0, 1]},
        ],
    )
    def test_arrays_that_do_not_fit_are_refused(self, path, arrays):
        """Oracle: the message: a layer that is missing, other shapes, and a pickle, which would run code."""
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=r"tagger.npz must be a tagger as .*, but is damaged or another file"):
            PosTagger(path)
        np.save(path.with_suffix(".npy"), np.zeros(3))
        with pytest.raises(ValueError, match=r"tagger.npy must be a tagger as .*, but is damaged or another file"):
            PosTagger(path.with_suffix(".npy"))


class TestPosTagger:
    def test_it_is_a_linear_classifier_on_a_layer(self, tmp_path):
        """Oracle: the formula, on the vectors that `Elmo` gives."""
        words, rng = ["Play", "it", "again"], np.random.default_rng(0)
        weight, bias = rng.normal(size=(3, 256)), rng.normal(size=3)
        np.savez(tmp_path / "tagger.npz", weight=weight, bias=bias, tags=np.array(["A", "B", "C"]), layer=2)
        vectors = Elmo.from_pretrained("small-open").embed([words], layers=2)[0]
        expected = ["ABC"[index] for index in (vectors @ weight.T + bias).argmax(-1)]
        assert PosTagger(tmp_path / "tagger.npz")(words) == expected

    @pytest.mark.parametrize(
        ("sentence", "tags"),
        [
            ("The children play in the garden .", "DET NOUN VERB ADP DET NOUN PUNCT"),
            ("She has a part in the new play .", "PRON VERB DET NOUN ADP DET ADJ NOUN PUNCT"),
            ("He will not sing , but Anna can dance .", "PRON AUX PART VERB PUNCT CCONJ PROPN AUX VERB PUNCT"),
        ],
    )
    def test_the_one_that_ships_knows_the_parts_of_speech(self, sentence, tags):
        """Oracle: the tags by hand."""
        assert PosTagger()(sentence.split()) == tags.split()
