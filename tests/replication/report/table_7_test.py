"""Tests of Table 7."""

import json
import os
from pathlib import Path

import pytest

from elmo_tasks.replication import Run, fine_tuning_results, fine_tuning_table, fine_tuning_table_in
from elmo_tasks.replication.train.record import mark_finished, read_record, write_record


@pytest.fixture
def finished(tmp_path):
    """A finished run: `finished(text, before, after)`, perplexities."""

    def make(text: str, before: float, after: float) -> Run:
        train = tmp_path / f"{text}.txt"
        train.write_text("a b c\nd e\n")
        about = {"data": "some data", "bilm": "a biLM"}
        run = Run("bilm", text, 1, None, tmp_path, {"train_data_path": str(train)}, {"text": text}, about)
        run.folder.mkdir(parents=True)
        write_record(run)
        run.serialization_dir.mkdir()
        # Its last line says when the training ended.
        log = run.folder / "log.txt"
        log.touch()
        ended = read_record(run.folder)["training"]["started"] + 300.0
        os.utime(log, (ended, ended))
        metrics = {"perplexity": before, "unknown_share": 0.125}
        Path(run.serialization_dir, "metrics_before.json").write_text(json.dumps(metrics))
        Path(run.serialization_dir, "metrics.json").write_text(json.dumps({"best_validation_perplexity": after}))
        mark_finished(run.folder)
        return run

    return make


class TestFineTuning:
    def test_our_rows_are_next_to_the_papers(self, finished):
        """Oracle: by hand; the paper's numbers are those of its appendix."""
        content = fine_tuning_results([finished("snli", 200.04, 50.0), finished("squad-questions", 301.0, 99.96)])
        table = fine_tuning_table(content)
        assert table.rows == [
            ["SNLI", "5", "12.5%", "200.0", "50.0", "72.1", "16.8"],
            ["SQuAD questions", "5", "12.5%", "301.0", "100.0", "158.2", "52.0"],
        ]
        assert "biLM: a biLM. Data: some data." in table.caption
        assert any(line.startswith("SNLI: 5 min, commit ") for line in table.runs)

    def test_a_result_file_gives_the_same_table(self, finished, tmp_path):
        """Oracle: the table of the content that was written."""
        content = fine_tuning_results([finished("ner", 200.0, 50.0)])
        (tmp_path / "table7.json").write_text(json.dumps(content))
        assert fine_tuning_table_in(tmp_path / "table7.json") == fine_tuning_table(content)

    @pytest.mark.parametrize(
        "content", ["[]", '{"format": 1, "table": "table 5"}', '{"format": 1, "table": "table 7"}']
    )
    def test_another_file_is_refused(self, tmp_path, content):
        """Oracle: the message names the file and the command that writes such files."""
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(ValueError, match=r"other\.json must be a file of .*--table 7"):
            fine_tuning_table_in(tmp_path / "other.json")

    def test_changed_scores_are_refused(self, finished):
        """Oracle: the checksum of the record."""
        run = finished("ner", 200.0, 50.0)
        (run.serialization_dir / "metrics.json").write_text('{"best_validation_perplexity": 1.0}')
        with pytest.raises(ValueError, match=r"metrics\.json"):
            fine_tuning_results([run])
