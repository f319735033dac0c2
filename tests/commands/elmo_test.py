"""Tests of `allennlp elmo`."""

import json

import h5py
import numpy as np
import pytest

from elmo_tasks import ElmoEmbedder
from tests.paths import TINY_BILM, bilm_files

OPTIONS, WEIGHTS = bilm_files(TINY_BILM)
FILES = ("--options-file", OPTIONS, "--weight-file", WEIGHTS)


@pytest.fixture
def text(tmp_path):
    (tmp_path / "in.txt").write_text("The cat sat .\na b\nThe cat sat .\n")
    return tmp_path / "in.txt"


class TestFormerElmo:
    @pytest.mark.parametrize("form", ["all", "top", "average"])
    @pytest.mark.parametrize("options", [[], ["--forget-sentences", "--batch-size", "1", "--vocab-path", "v.txt"]])
    def test_it_writes_the_same_file_as_elmo_embedder(self, command, text, tmp_path, form, options):
        command("elmo", text, tmp_path / "out.h5", f"--{form}", *FILES, *options, "--cuda-device", "-1")
        with open(text) as lines:
            ElmoEmbedder(OPTIONS, WEIGHTS).embed_file(lines, tmp_path / "expected.h5", form, 64, bool(options))
        with h5py.File(tmp_path / "out.h5") as found, h5py.File(tmp_path / "expected.h5") as expected:
            assert set(found) == set(expected)
            assert ("sentence_to_index" in found) != bool(options)
            for name in found:
                if name == "sentence_to_index":
                    assert json.loads(found[name][0]) == json.loads(expected[name][0])
                else:
                    np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-6)

    def test_sentences_may_be_the_keys(self, command, tmp_path):
        (tmp_path / "in.txt").write_text("a  b\nc\n")
        command("elmo", tmp_path / "in.txt", tmp_path / "out.h5", "--top", "--use-sentence-keys", *FILES)
        with h5py.File(tmp_path / "out.h5") as file:
            assert {name: array.shape for name, array in file.items()} == {"a b": (2, 16), "c": (1, 16)}
