"""Tests of the drawn figures."""

import csv
from xml.etree import ElementTree

import pytest

from elmo_tasks.replication import draw_curves, draw_mixes

CURVE = [
    {"task": "snli", "variant": variant, "size": size, "mean": mean, "sd": sd, "n": 2}
    for variant, size, mean, sd in (("baseline", 10, 40.0, ""), ("baseline", 100, 50.0, 1.0), ("both", 10, 60.0, 2.0))
]
MIX = [
    {"task": "snli", "place": place, "seed": seed, "layer": layer, "weight": weight, "gamma": 1.0}
    for place in ("input", "output")
    for seed, weights in ((1, (0.2, 0.8)), (2, (0.4, 0.6)))
    for layer, weight in enumerate(weights)
]


def texts_of(svg) -> set[str]:
    return {"".join(element.itertext()).strip() for element in ElementTree.parse(svg).iter() if "text" in element.tag}


class TestDrawing:
    def test_curves(self, tmp_path):
        """Oracle: what is written in the SVG, the size of the PNG (from its header), and the rows of the CSV file."""
        png, svg, values = draw_curves(CURVE, "size", tmp_path / "new" / "figure1")
        assert {"SNLI", "training examples", "accuracy, dev (%)", "baseline", "ELMo (both)"} <= texts_of(svg)
        header = png.read_bytes()[:24]
        assert header[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(header[16:20], "big") == pytest.approx(3.3 * 300, abs=1)
        with open(values, newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows == [{key: str(value) for key, value in row.items()} for row in CURVE]

    def test_epochs_are_whole_numbers(self, tmp_path):
        """Oracle: the numbers in the SVG; the scores have none below 10."""
        rows = [{"task": "snli", "variant": "both", "epoch": n, "mean": 50.0 * n, "sd": "", "n": 1} for n in (1, 2)]
        _, svg, _ = draw_curves(rows, "epoch", tmp_path / "figure1")
        assert {text for text in texts_of(svg) if text[:1].isdecimal() and float(text) < 10} == {"1", "2"}

    def test_mixes_have_a_grid_for_each_place_with_means_over_seeds(self, tmp_path):
        """Oracle: what is written in the SVG."""
        _, svg, _ = draw_mixes(MIX, tmp_path / "figure2")
        assert {"ELMo at the input", "ELMo at the output", "SNLI", "layer 0", "layer 1", "0.30", "0.70"} <= texts_of(
            svg
        )

    def test_a_bilm_with_fewer_layers_leaves_its_cells_empty(self, tmp_path):
        """Oracle: what is written in the SVG."""
        deep = [{**row, "task": "ner", "layer": row["layer"] + 2, "weight": 0.125} for row in MIX]
        _, svg, _ = draw_mixes([*MIX, *deep], tmp_path / "figure2")
        assert {"layer 2", "0.12"} <= texts_of(svg) and "nan" not in texts_of(svg)
