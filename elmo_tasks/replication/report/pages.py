"""Two pages of the documentation and a table of README.md, made of the result files."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.layout import increases, layout
from elmo_tasks.replication.report.render import grid, listed
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.report.table_5 import word_senses_table

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


def tables_page(files: Iterable[Path]) -> str:
    """
    # Parameters

    files
        Result files, as `allennlp elmo-tables --format json` prints them, and `allennlp elmo-wsd` writes them.

    # Returns

    `str`
        A page in Markdown with a table for each, in the order of their names.

    # Raises

    `ValueError`
        If there are no files, or one is not a result file.
    """
    sections = [f"## {t.title}\n\n{grid(t.columns, t.rows)}\n\n{listed(t.caption)}" for _, t in _tables(files)]
    return "\n\n".join([_MADE, _TABLES, *sections]) + "\n"


def runs_page(files: Iterable[Path]) -> str:
    """The page that `tables_page` refers to, of the same files."""
    sections = []
    for path, table in _tables(files):
        parts = [f"## {table.title}", _runs_of(path), listed(table.runs)]
        sections.append("\n\n".join(part for part in parts if part))
    return "\n\n".join([_MADE, _RUNS, *sections]) + "\n"


def readme_table(files: Iterable[Path]) -> str:
    """
    # Parameters

    files
        Result files; that of Table 1 is among them.

    # Returns

    `str`
        The rows of Table 1 in Markdown, in short.

    # Raises

    `ValueError`
        If the file of Table 1 is not there.
    """
    for path in sorted(files):
        if _table_name(path) == Exhibit.TABLE_1:
            columns = ["task", "measure", "baseline", "ELMo", "increase", "increase in the paper"]
            return grid(columns, increases(Results.from_file(path)))
    raise ValueError("there must be a result file of table 1, but no file is that one")


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


def _tables(files: Iterable[Path]) -> Sequence[tuple[Path, Table]]:
    found = [
        (path, word_senses_table(path) if _table_name(path) == Exhibit.TABLE_5 else layout(Results.from_file(path)))
        for path in sorted(files)
    ]
    if not found:
        raise ValueError("there must be a result file, but no file was named: see `allennlp elmo-tables --format json`")
    return found


def _table_name(path: Path) -> str | None:
    content = read_json(path)
    return content.get("table") if isinstance(content, dict) else None


def _runs_of(path: Path) -> str:
    if _table_name(path) == Exhibit.TABLE_5:
        return ""
    results = Results.from_file(path)
    rows: list[list[str]] = []
    for row in sorted(results.runs, key=lambda row: (list(TASKS).index(row["task"]), row["variant"], row["seed"])):
        scores = ["–" if row[split] is None else f"{row[split]:.2f}" for split in ("dev", "test")]
        rows.append([TASKS[row["task"]].title, row["variant"], str(row["seed"]), *scores, row.get("commit", "–")])
    for row in results.summaries:
        mean = f"{row['mean']:.2f}" + ("" if row["sd"] is None else f" ± {row['sd']:.2f}") + f" ({row['n']})"
        scores = [mean, "–"] if row["split"] == "dev" else ["–", mean]
        rows.append([TASKS[row["task"]].title, row["variant"], "–", *scores, row.get("commit", "–")])
    return grid(["task", "variant", "seed", "dev", "test", "commit"], rows)
