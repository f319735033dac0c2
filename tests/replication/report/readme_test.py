"""Tests of the part of README.md that is made."""

import pytest

from elmo_tasks.replication import Results, layout, results_section, with_section
from elmo_tasks.replication.__main__ import main
from elmo_tasks.replication.report.readme import BEGIN, END
from elmo_tasks.replication.report.render import markdown_table

ROW = {"task": "sst", "variant": "both", "metric": "accuracy", "split": "test", "mean": 42.0, "sd": 1.0, "n": 2}
README = f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe rest.\n"


@pytest.fixture
def files(tmp_path):
    """A README with markers, and a result file."""
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "a.json").write_text(Results("table 1", [], [ROW]).to_json({}))
    return [str(tmp_path / "README.md"), str(tmp_path / "a.json")]


class TestWithSection:
    def test_what_is_between_the_markers_is_replaced(self):
        """Oracle: by hand; twice is once."""
        made = with_section(README, "new")
        assert made == f"# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nThe rest.\n"
        assert with_section(made, "new") == made

    @pytest.mark.parametrize("readme", ["", f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}"])
    def test_a_text_without_its_markers_is_refused(self, readme):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="once"):
            with_section(readme, "new")

    def test_no_files_are_refused(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="there is none"):
            results_section([])


class TestMain:
    def test_it_writes_the_tables_and_then_finds_nothing_to_do(self, files, tmp_path):
        """Oracle: the table itself."""
        assert "make results" in main([*files, "--check"])
        assert (tmp_path / "README.md").read_text() == README
        assert main(files) is None
        table = markdown_table(layout(Results("table 1", [], [ROW])))
        assert (tmp_path / "README.md").read_text() == with_section(README, table)
        assert main([*files, "--check"]) is None

    def test_a_result_that_has_changed_makes_it_stale(self, files, tmp_path):
        """Oracle: the return value."""
        main(files)
        (tmp_path / "a.json").write_text(Results("table 1", [], [{**ROW, "mean": 43.0}]).to_json({}))
        assert main([*files, "--check"]) is not None

    def test_what_is_wrong_is_one_line(self, files, tmp_path):
        """Oracle: the message."""
        (tmp_path / "a.json").write_text("{")
        assert "a.json" in main(files) and "\n" not in main(files)
