"""Tests of the script that compares a checkpoint's layers with those of the library."""

import importlib.util

import pytest

from tests.paths import CHECKOUT, FIXTURES

SCRIPT = CHECKOUT / "benchmarks" / "transformer_layers.py"
FAMILIES = ["bert", "roberta", "gpt", "xlnet", "albert", "t5", "electra"]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_layers_are_those_of_the_library(checkpoint, tmp_path, monkeypatch, capsys, family):
    """Oracle: the difference that it prints for each pooling, over words that it counts."""
    spec = importlib.util.spec_from_file_location("transformer_layers", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = FIXTURES / "lm" / "dev.txt"
    short = [line for line in text.read_text().splitlines() if len(line.split()) < 12][:20]
    (tmp_path / "text.txt").write_text("\n".join(short))
    # The tiny checkpoints have 40 positions.
    given = [str(checkpoint(family)), str(tmp_path / "text.txt"), "--max-pieces", "36"]
    monkeypatch.setattr("sys.argv", ["transformer_layers.py", *given])
    script.main()
    lines = capsys.readouterr().out.splitlines()
    n_words = int(lines[0].split()[1])
    assert 50 < n_words <= sum(len(line.split()) for line in short)
    assert [line.split()[:2] for line in lines] == [["first", str(n_words)], ["mean", str(n_words)]]
    assert all(float(line.split()[-1]) < 1e-4 for line in lines)
