"""Tests of the pages and the table that are made of result files."""

import json

import pytest

from elmo_tasks.replication import Exhibit, Results, read_sources, readme_table, report_page, runs_page, tables_page
from elmo_tasks.replication.__main__ import main
from elmo_tasks.replication.report.findings import findings
from elmo_tasks.replication.report.pages import BEGIN, END, with_section
from elmo_tasks.replication.report.plan_results import PlanResults
from tests.paths import BILM_RESULTS
from tests.replication.overview.folders import write_run_file

ROW = {"task": "sst", "variant": "both", "metric": "accuracy", "split": "test", "mean": 42.0, "sd": 1.0, "n": 2}
RUN = {"task": "sst", "variant": "baseline", "seed": 7, "metric": "accuracy", "dev": 41.0, "test": 40.5, "commit": "c0"}
README = f"# Title\n\n{BEGIN}\nold\n{END}\n\nThe rest.\n"


def results_of(mean: float = 42.0) -> Results:
    return Results(
        "table 1", [RUN], [{**ROW, "mean": mean}], versions=["torch 2"], notes=["A note."], made=["By hand."]
    )


@pytest.fixture
def files(tmp_path):
    """A README and a page of findings with markers, and a result file."""
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "docs" / "replication").mkdir(parents=True)
    (tmp_path / "docs" / "replication" / "findings.md").write_text(README)
    (tmp_path / "table1.json").write_text(results_of().to_json({}))
    return [str(tmp_path / "README.md"), str(tmp_path)]


class TestPages:
    def test_scores_and_notes_are_on_one_page_and_runs_on_the_other(self, files, tmp_path):
        """Oracle: by hand: the cells and sentences of each page."""
        tables, runs = (page([tmp_path / "table1.json"]) for page in (tables_page, runs_page))
        assert "| 40.50 (1) | 42.00 ± 1.00 (2) |" in " ".join(tables.split())
        assert "- A note." in tables and "## Table 1" in tables
        assert "| SST-5 | baseline | 7 | 41.00 | 40.50 | c0 |" in " ".join(runs.split())
        assert "| SST-5 | both | – | – | 42.00 ± 1.00 (2) | – |" in " ".join(runs.split())
        assert "- By hand." in runs and "torch 2" in runs and "## Table 1" in runs
        assert not any(sentence in tables for sentence in ("c0", "By hand", "torch 2"))

    def test_the_table_of_the_readme_has_a_row_for_each_task(self, tmp_path, files):
        """Oracle: by hand; the increase is that of the paper's Table 1."""
        lines = [" ".join(line.split()) for line in readme_table([tmp_path / "table1.json"]).splitlines()]
        assert lines[0] == "| task | measure | baseline | ELMo | increase | increase in the paper |"
        assert lines[2:] == ["| SST-5 | accuracy, test | 40.50 (1) | 42.00 ± 1.00 (2) | +1.50 | +3.30 |"]

    def test_table_5_is_a_table_too(self):
        """Oracle: the result file that is there, with its notes of the run, on the page of runs alone."""
        path = BILM_RESULTS / "table5.json"
        (made,) = json.loads(path.read_text())["made"]
        assert "Table 5" in tables_page([path]) and "at commit" not in tables_page([path])
        assert made in runs_page([path])

    def test_tables_of_the_plan_are_next_to_those_of_files(self, tmp_path, files):
        """Oracle: by hand: the sections in the paper's order, and the cells of each."""
        new = [{**RUN, "variant": variant, "dev": 50.0} for variant in ("baseline", "both-top", "both-l2-1")]
        plan = PlanResults({Exhibit.TABLE_2: Results("table 2", new, made=["In an hour."])})
        paths = [BILM_RESULTS / "table5.json", tmp_path / "table1.json"]
        page, runs = tables_page(paths, plan), runs_page(paths, plan)
        for each in (page, runs):
            headings = [line.split(":")[0] for line in each.splitlines() if line.startswith("##")]
            assert headings == ["## Table 1", "## Table 2", "## Table 5"]
        assert "| 40.50 (1) | 42.00 ± 1.00 (2) |" in " ".join(page.split()) and "50.00 (1)" in page
        assert "In an hour." in runs
        assert "42.00 ± 1.00 (2)" in readme_table(paths, plan)

    def test_the_table_of_the_readme_has_tasks_with_both_scores(self):
        """Oracle: by hand."""
        new = [{**RUN, "variant": variant, "test": 50.0} for variant in ("baseline", "both")]
        new.append({**RUN, "task": "snli", "variant": "both"})
        plan = PlanResults({Exhibit.TABLE_1: Results("table 1", new)})
        rows = [" ".join(line.split()) for line in readme_table([], plan).splitlines()[2:]]
        assert rows == ["| SST-5 | accuracy, test | 50.00 (1) | 50.00 (1) | +0.00 | +3.30 |"]

    @pytest.mark.parametrize("make", [tables_page, runs_page, readme_table, findings])
    def test_a_table_that_is_there_twice_is_refused(self, tmp_path, files, make):
        """Oracle: the message names the file: of the plan's table, and of two files with one."""
        plan = PlanResults({Exhibit.TABLE_1: results_of()})
        with pytest.raises(ValueError, match=r"table1\.json has table 1, which is there from elsewhere too"):
            make([tmp_path / "table1.json"], plan)
        (tmp_path / "table1_too.json").write_text(results_of().to_json({}))
        with pytest.raises(ValueError, match=r"table1_too\.json has table 1"):
            make([tmp_path / "table1_too.json", tmp_path / "table1.json"])
        with pytest.raises(ValueError, match=r"copy\.json has table 5|table5\.json has table 5"):
            (tmp_path / "copy.json").write_bytes((BILM_RESULTS / "table5.json").read_bytes())
            make([BILM_RESULTS / "table5.json", tmp_path / "copy.json"])

    def test_the_weights_of_the_layers_are_means_over_seeds(self, tmp_path, files):
        """Oracle: by hand: two seeds at one place, one at another."""
        mixes = [
            {"task": "sst", "place": place, "seed": seed, "layer": layer, "weight": weight, "gamma": float(seed)}
            for place, seed, weights in (("input", 1, (0.2, 0.8)), ("input", 2, (0.4, 0.6)), ("output", 1, (0.5, 0.5)))
            for layer, weight in enumerate(weights)
        ]
        tables = {Exhibit.TABLE_1: Results("table 1", [{**RUN, "variant": "baseline", "test": 50.0}])}
        page = " ".join(tables_page([], PlanResults(tables, mixes=mixes)).split())
        assert "| task | layer 0 | layer 1 | γ |" in page
        assert "| SST-5, input (2) | 0.30 | 0.70 | 1.50 | | SST-5, output (1) | 0.50 | 0.50 | 1.00 |" in page
        deeper = [{**row, "task": "ner", "layer": row["layer"] + 1} for row in mixes if row["place"] == "output"]
        page = tables_page([], PlanResults(tables, mixes=[*mixes, *deeper]))
        assert "| NER, output (1) | – | 0.50 | 0.50 | 1.00 |" in " ".join(page.split())

    def test_no_files_are_refused(self, tmp_path):
        """Oracle: the messages."""
        with pytest.raises(ValueError, match="no file was named"):
            tables_page([])
        with pytest.raises(ValueError, match="a result file of table 1"):
            readme_table([BILM_RESULTS / "table5.json"])


class TestWithSection:
    def test_the_text_between_the_markers_is_replaced(self):
        """Oracle: by hand; twice is once."""
        made = with_section(README, "new")
        assert made == f"# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nThe rest.\n"
        assert with_section(made, "new") == made

    @pytest.mark.parametrize("readme", ["", f"{END}\n{BEGIN}", f"{BEGIN}\n{BEGIN}\n{END}"])
    def test_a_text_without_its_markers_is_refused(self, readme):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="once"):
            with_section(readme, "new")


class TestMain:
    def test_it_writes_all_and_then_finds_nothing_to_do(self, files, tmp_path):
        """Oracle: the functions of the pages."""
        assert "make results" in main([*files, "--check"])
        assert (tmp_path / "README.md").read_text() == README and not (tmp_path / "docs" / "report.html").exists()
        assert main(files) is None
        results = [tmp_path / "table1.json"]
        assert (tmp_path / "README.md").read_text() == with_section(README, readme_table(results))
        page = tmp_path / "docs" / "replication" / "findings.md"
        assert page.read_text() == with_section(README, findings(results))
        assert (tmp_path / "docs" / "replication" / "tables.md").read_text() == tables_page(results)
        assert (tmp_path / "docs" / "replication" / "runs.md").read_text() == runs_page(results)
        report = report_page(read_sources(tmp_path, results))
        assert (tmp_path / "docs" / "report.html").read_text() == report
        assert main([*files, "--check"]) is None

    @pytest.mark.parametrize(
        "name", ["README.md", "docs/replication/tables.md", "docs/replication/runs.md", "docs/report.html"]
    )
    def test_a_page_that_was_changed_is_stale(self, files, tmp_path, name):
        """Oracle: the message names that file and no other."""
        main(files)
        page = tmp_path / name
        page.write_text(page.read_text().replace("42.00", "52.00"))
        assert main([*files, "--check"]).startswith(f"{page} must be what the result files say")

    def test_a_result_that_has_changed_makes_all_stale(self, files, tmp_path):
        """Oracle: the message."""
        main(files)
        (tmp_path / "table1.json").write_text(results_of(43.0).to_json({}))
        assert "README.md, " in main([*files, "--check"])

    def test_a_run_of_earlier_code_is_in_none(self, files, tmp_path, capsys):
        """Oracle: the pages without its file."""
        main(files)
        pages = [tmp_path / "docs" / "replication" / "runs.md", tmp_path / "docs" / "report.html"]
        before = [page.read_text() for page in pages]
        write_run_file(tmp_path, "ner", "baseline", 1, 80.0)
        assert main([*files, "--check"]) is None
        assert "ner/baseline/1 is a run of earlier code" in capsys.readouterr().err
        assert main(files) is None and [page.read_text() for page in pages] == before
        assert "80.00" in report_page(read_sources(tmp_path, [tmp_path / "table1.json"]))

    def test_an_error_is_one_line(self, files, tmp_path):
        """Oracle: the message."""
        (tmp_path / "table1.json").write_text("{")
        assert "table1.json" in main(files) and "\n" not in main(files)
