"""The part of README.md that is made from result files."""

import json
from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.replication.report.layout import layout
from elmo_tasks.replication.report.render import markdown_table
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.report.table_5 import WORD_SENSES, word_senses_table

__all__ = ["BEGIN", "END", "results_section", "with_section"]

BEGIN = "<!-- Made from results/ by `make results`: begin -->"
END = "<!-- Made from results/ by `make results`: end -->"


def results_section(files: Iterable[Path]) -> str:
    """
    # Parameters

    files : `Iterable[Path]`
        Result files, as `allennlp elmo-tables --format json` prints them, and `allennlp elmo-wsd` writes them.

    # Returns

    `str`
        A table in Markdown for each, in the order of their names.

    # Raises

    `ValueError`
        If there is none, or one is not such a file.
    """
    tables = [markdown_table(_table(path)) for path in sorted(files)]
    if not tables:
        raise ValueError("there must be a result file, but there is none: see `allennlp elmo-tables --format json`")
    return "\n\n".join(tables)


def _table(path: Path) -> Table:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} must be a result file, but: {error}") from None
    if isinstance(content, dict) and content.get("table") == WORD_SENSES:
        return word_senses_table(path)
    return layout(Results.from_file(path))


def with_section(readme: str, section: str) -> str:
    """
    # Parameters

    readme : `str`
        A text with the lines `BEGIN` and `END`, once each.
    section : `str`
        What shall be between them.

    # Returns

    `str`
        The text with it.

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
