from pathlib import Path

import pytest

from elmo_tasks import Elmo
from elmo_tasks.analysis import index_text
from elmo_tasks.demo.word_indexes import open_indexes
from tests.paths import TINY_BILM


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.from_pretrained(TINY_BILM)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the indexes `0`, `top`, `2` and `mix`."""
    folder = tmp_path_factory.mktemp("indexes")
    (folder / "text.txt").write_text("They play .\n")
    for layer in (0, "top", 2, "mix"):
        index_text(str(folder / "text.txt"), folder / str(layer), str(TINY_BILM), layer=layer)
    return folder


class TestOpenIndexes:
    def test_each_layer_has_its_index(self, folder, elmo):
        """Oracle: by hand; the top layer has the last number."""
        indexes = open_indexes([folder / "top", folder / "0"], elmo, str(TINY_BILM))
        assert {layer: found.index.folder.name for layer, found in indexes.items()} == {0: "0", 2: "top"}

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["mix"], "must be of single layers, but .* is of their mix"),
            (["top", "2"], "must be one index for a layer, but .*top' and .*2' are both of layer 2"),
        ],
    )
    def test_indexes_that_do_not_fit_are_refused_in_a_sentence(self, folder, elmo, names, message):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match=message):
            open_indexes([folder / name for name in names], elmo, str(TINY_BILM))
