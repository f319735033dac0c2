"""Tests of the weights of layers in an archive."""

import io
import random

import pytest
import torch

from elmo_tasks.replication import LayerWeight, layer_weights

WEIGHTS = {
    "text_field_embedder.token_embedder_elmo.mix.layer_weights": torch.tensor([0.0, 0.0, 0.0]),
    "text_field_embedder.token_embedder_elmo.mix.gamma": torch.tensor(2.0),
    "output_embedder.token_embedder_elmo.mix.layer_weights": torch.tensor([1.0, 2.0, 3.0]).log(),
    "output_embedder.token_embedder_elmo.mix.gamma": torch.tensor(1.0),
    "encoder.weight": torch.zeros(2),
}


class TestLayerWeights:
    def test_both_places_after_the_softmax(self, tmp_path, write_archive):
        """Oracle: the softmax by hand."""
        content = io.BytesIO()
        torch.save(WEIGHTS, content)
        write_archive(tmp_path / "model.tar.gz", content.getvalue())
        found = layer_weights(tmp_path / "model.tar.gz")
        expected = [LayerWeight("input", j, 1 / 3, 2.0) for j in range(3)]
        expected += [LayerWeight("output", j, (j + 1) / 6, 1.0) for j in range(3)]
        found, expected = (sorted(rows, key=lambda row: row[:2]) for rows in (found, expected))
        assert [row[:2] for row in found] == [row[:2] for row in expected]
        assert [row[2:] for row in found] == [pytest.approx(row[2:]) for row in expected]

    def test_no_flipped_bit_goes_unseen(self, tmp_path, write_archive):
        """Oracle: an error that names the file, or, in the header of gzip, the same weights."""
        content, path, places = io.BytesIO(), tmp_path / "model.tar.gz", random.Random(0)
        torch.save(WEIGHTS, content)
        write_archive(path, content.getvalue())
        whole, expected = path.read_bytes(), layer_weights(path)
        for _ in range(40):
            damaged = bytearray(whole)
            damaged[places.randrange(len(whole))] ^= 1 << places.randrange(8)
            path.write_bytes(damaged)
            try:
                assert layer_weights(path) == expected
            except ValueError as error:
                assert str(error).startswith(f"{path} must be the whole archive of a trained model, but: ")

    @pytest.mark.parametrize(
        "weights",
        [
            b"",
            b"PK\x03\x04",
            {"text_field_embedder.mix.layer_weights": torch.zeros(3)},
            {"a.mix.layer_weights": "x", "a.mix.gamma": torch.zeros(1)},
            {"a.mix.layer_weights": torch.zeros(3), "a.mix.gamma": torch.zeros(2)},
            [1],
        ],
    )
    def test_weights_of_another_form_are_refused(self, tmp_path, write_archive, weights):
        """Oracle: the message."""
        content = io.BytesIO()
        if not isinstance(weights, bytes):
            torch.save(weights, content)
            weights = content.getvalue()
        write_archive(tmp_path / "model.tar.gz", weights)
        with pytest.raises(ValueError, match=r"model.tar.gz must be the whole archive of a trained model, but: "):
            layer_weights(tmp_path / "model.tar.gz")

    def test_half_an_archive_is_refused(self, tmp_path, write_archive):
        """Oracle: the message."""
        path = tmp_path / "model.tar.gz"
        write_archive(path, bytes(range(256)) * 100)
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(ValueError, match="whole archive"):
            layer_weights(path)
