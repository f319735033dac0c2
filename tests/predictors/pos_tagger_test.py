import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.predictors.pos_tagger import PosTagger


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
