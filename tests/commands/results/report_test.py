"""Tests of `allennlp elmo-report`."""

from tests.replication.overview.folders import copied_results, write_run_file


class TestReport:
    def test_it_writes_one_page(self, command, tmp_path, capsys):
        """Oracle: the line that is printed, and the file; what cannot be read is named on stderr and in the page."""
        folder = copied_results(tmp_path / "results")
        write_run_file(folder, "ner", "input", 1, 80.0, status="failed", reason="out of <memory>")
        command("elmo-report", folder)
        page = (folder / "report.html").read_text()
        captured = capsys.readouterr()
        assert captured.out.startswith(f"{folder / 'report.html'}: 6 tables and ")
        assert "not in the report: " in captured.err and "out of <memory>" in captured.err
        assert page.startswith("<!DOCTYPE html>") and "out of &lt;memory&gt;" in page
        command("elmo-report", folder, "--output-file", tmp_path / "new" / "page.html")
        assert (tmp_path / "new" / "page.html").read_text() == page

    def test_errors_are_one_line(self, error_of, tmp_path):
        """Oracle: the messages; nothing is written."""
        assert "must have results" in error_of("elmo-report", tmp_path)
        assert "there must be a folder of results" in error_of("elmo-report", tmp_path / "none")
        folder = copied_results(tmp_path / "results")
        assert "is a folder: name a file in it" in error_of("elmo-report", folder, "--output-file", tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]
