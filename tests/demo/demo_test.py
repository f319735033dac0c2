import shutil

import pytest

from elmo_tasks.demo.demo import loaded_demo
from tests.paths import TINY_BILM


class TestLoadedDemo:
    def test_without_archives_it_has_what_ships(self, tmp_path):
        """Oracle: neighbours of each layer from the text that ships, static ones, and a temporary folder that goes."""
        with loaded_demo([], bilm=str(TINY_BILM)) as demo:
            found = demo.neighbors(list(demo.examples[0].sentences), "play", 3)
            assert [layer["layer"] for layer in found["layers"]] == [0, 1, 2]
            assert len(found["static"]) == 3
            folder = demo.words.indexes[0].index.folder
            assert folder.is_dir()
            with pytest.raises(
                ValueError, match=r"must have its softmax and vocab.txt to say .*, but 'bilm_tiny' has none"
            ):
                demo.likelihood("They play .")
        assert not folder.exists()

    def test_a_korean_bilm_has_korean_examples(self, tmp_path):
        """Oracle: the examples; there are no static vectors, since those that ship are English."""
        for name in ("options.json", "weights.hdf5"):
            shutil.copy(TINY_BILM / name, tmp_path)
        (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n있다\n수\n그\n이\n")
        with loaded_demo([], bilm=str(tmp_path)) as demo:
            assert [example.word for example in demo.examples] == ["눈이", "사과를"]
            found = demo.similarity(list(demo.examples[0].sentences), "눈이")
            assert [one["position"] for one in found["occurrences"]] == [1, 1]
            assert demo.neighbors(["눈이 ."], "눈이")["static"] is None
            with pytest.raises(ValueError, match="must hold a softmax"):
                demo.likelihood("눈이 .")


class TestDemo:
    def test_words_have_their_likelihood_where_the_bilm_has_a_softmax(self, demo):
        """Oracle: `LanguageModel.score`: the words and the boundary add up to the sentence."""
        found = demo.likelihood("They play .")
        (sentence,) = demo.language_model.score([["They", "play", "."]])
        assert sum(found["forward"]) + found["end"] == pytest.approx(sentence.forward, rel=1e-5)
        assert sum(found["backward"]) + found["begin"] == pytest.approx(sentence.backward, rel=1e-5)
        assert found["is_known"].count(False) == sentence.n_unknown
