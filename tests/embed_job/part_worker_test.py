"""Tests of the biLM that embeds part after part."""

import unicodedata

import numpy as np
import pytest
import torch

from elmo_tasks import Elmo
from elmo_tasks.bilm.weights_state import bilm_digest
from elmo_tasks.embed_job.formats.part_file import PartOrigin, part_path, read_part
from elmo_tasks.embed_job.options import EmbedOptions
from elmo_tasks.embed_job.part_worker import PartDone, PartWork, PartWorker, load_elmo
from elmo_tasks.embed_job.text_parts import LinePart
from tests.paths import TINY_BILM

PART = LinePart(2, 6, ["The  cat sat.", "", "Ja"])
ORIGIN = PartOrigin.of(PART.summary(), "0123")


@pytest.fixture(scope="module")
def elmo(fixtures_root) -> Elmo:
    return Elmo.from_pretrained(TINY_BILM)


class TestPartWorker:
    @pytest.mark.parametrize("readout", [{}, {"layers": "all"}, {"pool": "max", "weights": (0.0, 1.0, 2.0)}], ids=str)
    def test_a_part_is_in_its_file(self, tmp_path, tiny_bilm, elmo, readout):
        """Oracle: `Elmo.embed` of the words, read back; the words counted by hand."""
        options = EmbedOptions(bilm=tiny_bilm, **readout)
        assert PartWorker(PartWork(options, tmp_path, "npz", "0123", ""), elmo=elmo).run(PART) == PartDone(2, 4)
        found = read_part(part_path(tmp_path, 2, "npz"), ORIGIN)
        assert (found.first, found.sentences) == (6, ["The cat sat.", "", "Ja"])
        expected = elmo.embed([["The", "cat", "sat."], [], ["Ja"]], **readout)
        for array, vectors in zip(found.vectors, expected, strict=True):
            assert array.dtype == np.float32 and array.shape == vectors.shape
            np.testing.assert_allclose(array, vectors, atol=1e-6)

    def test_spacy_splits_the_lines_if_tokenize_is_set(self, tmp_path, tiny_bilm, elmo):
        """Oracle: by hand: the full stop is a word of its own."""
        worker = PartWorker(
            PartWork(EmbedOptions(bilm=tiny_bilm, tokenize=True), tmp_path, "npz", "0123", ""), elmo=elmo
        )
        assert worker.run(PART) == PartDone(2, 5)
        assert read_part(part_path(tmp_path, 2, "npz"), ORIGIN).sentences[0] == "The cat sat ."

    @pytest.mark.parametrize("nfc", [True, False])
    def test_the_text_is_put_into_nfc_unless_it_shall_not_be(self, tmp_path, tiny_bilm, elmo, nfc):
        """Oracle: `unicodedata`: a word in two forms has one vector, or two."""
        forms = [unicodedata.normalize(form, "나는 café") for form in ("NFC", "NFD")]
        worker = PartWorker(PartWork(EmbedOptions(bilm=tiny_bilm, nfc=nfc), tmp_path, "npz", "0123", ""), elmo=elmo)
        embedded, _ = worker.embed(LinePart(0, 0, forms))
        assert embedded.sentences == [forms[0], forms[0 if nfc else 1]]
        assert np.array_equal(*embedded.vectors) == nfc

    def test_float16_is_refused_for_what_it_cannot_hold(self, tmp_path, tiny_bilm, elmo):
        """Oracle: the message names the line, the third of a part that begins with the seventh; no file is left."""
        worker = PartWorker(
            PartWork(EmbedOptions(bilm=tiny_bilm, dtype="float16", gamma=1e9), tmp_path, "npz", "0123", ""), elmo=elmo
        )
        with pytest.raises(
            ValueError, match=r"up to 65504, but in the vectors of line 9 .*: use float32, or a smaller gamma"
        ):
            worker.run(LinePart(2, 6, ["", "", "Ja"]))
        assert not list(tmp_path.iterdir())

    def test_another_bilm_than_that_of_the_job_is_an_error(self, tmp_path, tiny_bilm):
        """Oracle: the message; no file is left."""
        worker = PartWorker(PartWork(EmbedOptions(bilm=tiny_bilm, device="cpu"), tmp_path, "npz", "0123", "0" * 64))
        with pytest.raises(ValueError, match=r"must have the same biLM, but .*bilm_tiny' has the digest .* and 0{64}"):
            worker.run(PART)
        assert not list(tmp_path.iterdir())

    def test_it_loads_its_bilm_for_the_first_part(self, tmp_path, tiny_bilm, elmo):
        """Oracle: a worker that is given the biLM; before the first part, a wrong name is no error; torch's threads."""
        wrong = PartWorker(PartWork(EmbedOptions(bilm="nothing"), tmp_path, "npz", "0123", ""))
        with pytest.raises(ValueError, match="'nothing' is neither"):
            wrong.run(PART)
        options, n_threads = EmbedOptions(bilm=tiny_bilm, device="cpu"), torch.get_num_threads()
        weights = bilm_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()
        (tmp_path / "given").mkdir()
        PartWorker(PartWork(options, tmp_path / "given", "npz", "0123", ""), elmo=elmo).run(PART)
        torch.set_num_threads(2)
        try:
            PartWorker(PartWork(options, tmp_path, "npz", "0123", weights), max_threads=1).run(PART)
            assert torch.get_num_threads() == 1
        finally:
            torch.set_num_threads(n_threads)
        found, expected = (read_part(part_path(folder, 2, "npz"), ORIGIN) for folder in (tmp_path, tmp_path / "given"))
        for array, vectors in zip(found.vectors, expected.vectors, strict=True):
            np.testing.assert_allclose(array, vectors, atol=1e-6)


class TestLoadElmo:
    def test_it_is_the_bilm_of_the_options(self, tiny_bilm, elmo):
        """Oracle: its weights, and the precision that is asked for."""
        found = load_elmo(EmbedOptions(bilm=tiny_bilm, precision="tf32", device="cpu"))
        assert found.bilm.precision == "tf32"
        assert torch.equal(found.bilm.forward_layers[0].kernel, elmo.bilm.forward_layers[0].kernel.cpu())
