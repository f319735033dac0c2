import json
import math
import re
from pathlib import Path

import pytest

from elmo_tasks.data import LmText
from tests.language_models import metrics_of

pytestmark = pytest.mark.slow


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    rows = re.findall(r"^(\w+) +([\d,.]+)$", capsys.readouterr().out, flags=re.MULTILINE)
    return {name: float(value.replace(",", "")) for name, value in rows}


class TestPerplexityOfText:
    def test_it_is_the_validation_perplexity_of_the_run(
        self, lm_run, exported, command, fixtures_root, capsys
    ):
        command("elmo-perplexity", exported, fixtures_root / "lm" / "dev.txt")
        found, expected = printed(capsys), metrics_of(lm_run)
        for name in ("perplexity", "forward_perplexity", "backward_perplexity"):
            assert found[name] == pytest.approx(expected[f"best_validation_{name}"], rel=1e-4)
        assert found["unknown_share"] == pytest.approx(
            expected["best_validation_unknown_share"], abs=1e-4
        )
        assert (found["sentences"], found["words"]) == (103, 1264)

    def test_it_writes_the_likelihood_of_each_sentence(
        self, exported, command, fixtures_root, tmp_path, capsys
    ):
        text, file = fixtures_root / "lm" / "dev.txt", tmp_path / "scores.jsonl"
        command("elmo-perplexity", exported, text, "--output-file", file)
        scores = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        assert [score["words"] for score in scores] == list(LmText(text))
        n_predictions = sum(len(score["words"]) + 1 for score in scores)
        found = printed(capsys)
        for direction in ("forward", "backward"):
            mean = -sum(score[direction] for score in scores) / n_predictions
            assert found[f"{direction}_perplexity"] == pytest.approx(math.exp(mean), rel=1e-4)
        n_words = sum(len(score["words"]) for score in scores)
        assert found["unknown_share"] == pytest.approx(
            sum(s["n_unknown"] for s in scores) / n_words, abs=1e-4
        )

    def test_each_line_has_one_row_with_its_number(self, exported, command, tmp_path, capsys):
        """A blank line has no sentence, and a long one has two."""
        lines = ["The dog barks .", "", " ".join(["river"] * 300), "It rains .", ""]
        (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
        command(
            "elmo-perplexity", exported, tmp_path / "a.txt", "--output-file", tmp_path / "a.jsonl"
        )
        found = printed(capsys)
        rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
        assert [(row["line"], row["words"]) for row in rows] == [
            (number, line.split()) for number, line in enumerate(lines, start=1)
        ]
        assert [row["n_sentences"] for row in rows] == [1, 0, 2, 1, 0]
        assert found["sentences"] == 4 and found["words"] == 307
        nats = -sum(row["forward"] for row in rows) / (307 + 4)
        assert found["forward_perplexity"] == pytest.approx(math.exp(nats), rel=1e-4)
        (tmp_path / "b").mkdir()
        for name in ("x.txt", "y.txt"):
            (tmp_path / "b" / name).write_text("It rains .\n")
        command("elmo-perplexity", exported, tmp_path / "b", "--output-file", tmp_path / "b.jsonl")
        rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
        assert [(Path(row["file"]).name, row["line"]) for row in rows] == [
            ("x.txt", 1),
            ("y.txt", 1),
        ]
        assert rows[0]["forward"] == pytest.approx(rows[1]["forward"])

    @pytest.mark.parametrize("name", ["", "model.tar.gz"])
    def test_the_training_of_a_bilm_must_be_exported_first(
        self, lm_run, command, fixtures_root, name
    ):
        with pytest.raises(SystemExit, match="elmo-export"):
            command("elmo-perplexity", lm_run / name, fixtures_root / "lm" / "dev.txt")
