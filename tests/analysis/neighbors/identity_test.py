"""Tests of the biLM of an index."""

import pytest

from elmo_tasks import Elmo
from elmo_tasks.analysis import build_index, check_bilm
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from tests.paths import TINY_BILM

WEIGHTS = sha256_of(TINY_BILM / "weights.hdf5")


class TestCheckBilm:
    @pytest.mark.parametrize(
        ("entries", "is_same"),
        [
            ({}, True),
            ({"weights": WEIGHTS}, True),
            ({"weights": "0" * 64}, False),
        ],
    )
    def test_an_index_of_the_first_version(self, tmp_path, entries, is_same):
        """Oracle: by hand, from the entries that it has in place of the digest; one built in Python has none."""
        elmo = Elmo.from_pretrained(TINY_BILM)
        index = build_index(elmo, [["They", "play"]], tmp_path / "index")
        about = read_sealed(tmp_path / "index" / "index.json")
        del about["digest"]
        write_sealed(tmp_path / "index" / "index.json", about | entries)
        index._open()
        if is_same:
            check_bilm(index, elmo, str(TINY_BILM))
        else:
            with pytest.raises(ValueError, match="must have the biLM of its index"):
                check_bilm(index, elmo, str(TINY_BILM))
