"""Tests of the weights of layers in an archive."""

import io

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

    def test_half_an_archive_is_refused(self, tmp_path, write_archive):
        """Oracle: the message."""
        path = tmp_path / "model.tar.gz"
        write_archive(path, bytes(range(256)) * 100)
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(ValueError, match="whole archive"):
            layer_weights(path)
