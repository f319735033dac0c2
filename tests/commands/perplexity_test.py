import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data import LmText
from tests.language_models import metrics_of

pytestmark = pytest.mark.slow


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    rows = re.findall(r"^(\w+) +([\d,.]+)$", capsys.readouterr().out, flags=re.MULTILINE)
    return {name: float(value.replace(",", "")) for name, value in rows}


def rows_of(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


class TestPerplexityOfText:
    def test_it_is_the_validation_perplexity_of_the_run(
        self, lm_run, exported, command, fixtures_root, capsys
    ):
        command("elmo-perplexity", exported, fixtures_root / "lm" / "dev.txt")
        numbers = printed(capsys)
        metrics = metrics_of(lm_run)
        for name in ("perplexity", "forward_perplexity", "backward_perplexity"):
            assert numbers[name] == pytest.approx(metrics[f"best_validation_{name}"], rel=1e-4)
        unknown_share = metrics["best_validation_unknown_share"]
        assert numbers["unknown_share"] == pytest.approx(unknown_share, abs=1e-4)
        assert numbers["sentences"] == 103
        assert numbers["words"] == 1264

    def test_it_writes_the_likelihood_of_each_sentence(
        self, exported, command, fixtures_root, tmp_path, capsys
    ):
        text = fixtures_root / "lm" / "dev.txt"
        output = tmp_path / "scores.jsonl"
        command("elmo-perplexity", exported, text, "--output-file", output)
        rows = rows_of(output)
        assert [row["words"] for row in rows] == list(LmText(text))
        n_words = sum(len(row["words"]) for row in rows)
        # Each sentence has a boundary, too.
        n_predictions = n_words + len(rows)
        numbers = printed(capsys)
        for direction in ("forward", "backward"):
            mean = -sum(row[direction] for row in rows) / n_predictions
            assert numbers[f"{direction}_perplexity"] == pytest.approx(math.exp(mean), rel=1e-4)
        unknown_share = sum(row["n_unknown"] for row in rows) / n_words
        assert numbers["unknown_share"] == pytest.approx(unknown_share, abs=1e-4)

    def test_each_line_has_one_row_with_its_number(self, exported, command, tmp_path, capsys):
        """A blank line has no sentence, and a long one has two."""
        lines = ["The dog barks .", "", " ".join(["river"] * 300), "It rains .", ""]
        text = tmp_path / "a.txt"
        text.write_text("\n".join(lines) + "\n")
        output = tmp_path / "a.jsonl"
        command("elmo-perplexity", exported, text, "--output-file", output)
        numbers = printed(capsys)
        rows = rows_of(output)
        assert [row["line"] for row in rows] == [1, 2, 3, 4, 5]
        assert [row["words"] for row in rows] == [line.split() for line in lines]
        assert [row["n_sentences"] for row in rows] == [1, 0, 2, 1, 0]
        assert numbers["sentences"] == 4
        assert numbers["words"] == 307
        mean = -sum(row["forward"] for row in rows) / (307 + 4)
        assert numbers["forward_perplexity"] == pytest.approx(math.exp(mean), rel=1e-4)

    def test_the_rows_of_several_files_have_their_names(self, exported, command, tmp_path):
        folder = tmp_path / "texts"
        folder.mkdir()
        for name in ("x.txt", "y.txt"):
            (folder / name).write_text("It rains .\n")
        output = tmp_path / "b.jsonl"
        command("elmo-perplexity", exported, folder, "--output-file", output)
        first_row, second_row = rows_of(output)
        assert (first_row["file"], first_row["line"]) == (str(folder / "x.txt"), 1)
        assert (second_row["file"], second_row["line"]) == (str(folder / "y.txt"), 1)
        assert first_row["forward"] == pytest.approx(second_row["forward"])

    @pytest.mark.parametrize("name", ["", "model.tar.gz"])
    def test_the_training_of_a_bilm_must_be_exported_first(
        self, lm_run, command, fixtures_root, name
    ):
        with pytest.raises(SystemExit, match="elmo-export"):
            command("elmo-perplexity", lm_run / name, fixtures_root / "lm" / "dev.txt")
