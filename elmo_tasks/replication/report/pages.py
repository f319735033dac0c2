"""Two pages of the documentation and a table of README.md, made of the result files."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.figure_tables import figure_sections
from elmo_tasks.replication.report.layout import increases, layout
from elmo_tasks.replication.report.plan_results import PlanResults
from elmo_tasks.replication.report.render import grid, listed
from elmo_tasks.replication.report.result_file import TABLES_WITHOUT_RUNS, read_result_files
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.table import Table

__all__ = ["BEGIN", "END", "readme_table", "runs_page", "tables_page", "with_section"]

BEGIN = "<!-- Made from results/ by `make results`: begin -->"
END = "<!-- Made from results/ by `make results`: end -->"

_MADE = "<!-- Made from results/ by `make results`: change those files, not this page. -->"
_TABLES = """# The paper's tables on open data

Our numbers next to those of the paper. The paper's data sets have to be bought or are larger than a small machine can
train on, so these are open data sets, the small biLM that ships, and short trainings: compare baseline and ELMo within
a row, not with the paper's numbers. [Runs](runs.md) says how each number was made."""
_RUNS = """# Runs

How the numbers of [the tables](tables.md) were made: the score of each run in percent, versions, commits and machines.
Where there is no seed, only the mean over seeds was kept."""

_NO_RUNS = PlanResults()


class _Made(NamedTuple):
    exhibit: Exhibit
    table: Table
    # None: a table that is no table of runs.
    results: Results | None


def tables_page(files: Iterable[Path], plan: PlanResults = _NO_RUNS) -> str:
    """
    # Parameters

    files
        Result files, as `allennlp elmo-tables --format json` prints them, and `allennlp elmo-wsd` writes them.
    plan
        The finished runs of the plan, whose tables are in no file.

    # Returns

    `str`
        A page in Markdown with a table for each, in the paper's order.

    # Raises

    `ValueError`
        If there is nothing to show, one is not a result file, or there is a table twice.
    """

    def parts(made: _Made) -> list[str]:
        return [grid(made.table.columns, made.table.rows), listed(made.table.caption)]

    return _page(_TABLES, _made(files, plan), parts, figure_sections(plan))


def runs_page(files: Iterable[Path], plan: PlanResults = _NO_RUNS) -> str:
    """The page that `tables_page` refers to, of the same files and runs."""

    def parts(made: _Made) -> list[str]:
        return ["" if made.results is None else _runs_of(made.results), listed(made.table.runs)]

    return _page(_RUNS, _made(files, plan), parts)


def readme_table(files: Iterable[Path], plan: PlanResults = _NO_RUNS) -> str:
    """
    # Parameters

    files, plan
        As for `tables_page`; Table 1 is among them.

    # Returns

    `str`
        The rows of Table 1 in Markdown, in short, of each task with both scores.

    # Raises

    `ValueError`
        If there is no Table 1, one is not a result file, or there is a table twice.
    """
    scores, _ = read_result_files(files, plan.tables)
    results = {**scores, **plan.tables}.get(Exhibit.TABLE_1)
    rows = [] if results is None else [row for row in increases(results) if "–" not in row]
    if not rows:
        raise ValueError("there must be a result file of table 1, but no file is that one")
    return grid(["task", "measure", "baseline", "ELMo", "increase", "increase in the paper"], rows)


def with_section(readme: str, section: str) -> str:
    """
    # Parameters

    readme
        A text with the lines `BEGIN` and `END`, once each.
    section
        The new text between them.

    # Raises

    `ValueError`
        If the two lines are not there, or not in this order.
    """
    lines = readme.split("\n")
    if lines.count(BEGIN) != 1 or lines.count(END) != 1 or lines.index(BEGIN) > lines.index(END):
        raise ValueError(
            f"the text must have the line {BEGIN!r} once and after it {END!r} once: put them where results go"
        )
    begin, end = lines.index(BEGIN), lines.index(END)
    return "\n".join([*lines[: begin + 1], "", section, "", *lines[end:]])


def _made(files: Iterable[Path], plan: PlanResults) -> list[_Made]:
    """In the paper's order."""
    scores, measurements = read_result_files(files, plan.tables)
    found = [_Made(exhibit, layout(results), results) for exhibit, results in {**scores, **plan.tables}.items()]
    found += [_Made(exhibit, TABLES_WITHOUT_RUNS[exhibit](path), None) for exhibit, path in measurements.items()]
    if not found:
        raise ValueError("there must be a result file, but no file was named: see `allennlp elmo-tables --format json`")
    return sorted(found, key=lambda made: list(Exhibit).index(made.exhibit))


def _page(head: str, tables: list[_Made], parts: Callable[[_Made], list[str]], of_figures: Sequence[str] = ()) -> str:
    sections = [_MADE, head]
    for made in tables:
        sections += [f"## {made.table.title}", *(part for part in parts(made) if part)]
    return "\n\n".join([*sections, *of_figures]) + "\n"


def _runs_of(results: Results) -> str:
    rows: list[list[str]] = []
    for row in sorted(results.runs, key=lambda row: (list(TASKS).index(row["task"]), row["variant"], row["seed"])):
        scores = ["–" if row[split] is None else f"{row[split]:.2f}" for split in ("dev", "test")]
        rows.append([TASKS[row["task"]].title, row["variant"], str(row["seed"]), *scores, row.get("commit", "–")])
    for row in results.summaries:
        mean = f"{row['mean']:.2f}" + ("" if row["sd"] is None else f" ± {row['sd']:.2f}") + f" ({row['n']})"
        scores = [mean, "–"] if row["split"] == "dev" else ["–", mean]
        rows.append([TASKS[row["task"]].title, row["variant"], "–", *scores, row.get("commit", "–")])
    return grid(["task", "variant", "seed", "dev", "test", "commit"], rows)
