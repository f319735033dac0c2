"""Tables as Markdown, LaTeX and HTML."""

import re
from collections.abc import Callable, Iterable

from tabulate import LATEX_ESCAPE_RULES, tabulate

from elmo_tasks.printable import one_line
from elmo_tasks.replication.report.page import rendered
from elmo_tasks.replication.report.table import Table

__all__ = ["RENDERERS", "grid", "html_table", "latex_table", "listed", "markdown_table"]

# Characters that LaTeX has no letter for in its usual fonts, or that are quoted in another way.
_LATEX = {"±": r"$\pm$", "λ": r"$\lambda$", "–": "--", "“": "``", "”": "''", '"': "''"}

# What begins a list, or a heading, a quotation or a line, at the beginning of a text.
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)])|(?=[#>+~=-]))")
_AND_BACKSLASH = r"\1\\"


def markdown_table(table: Table) -> str:
    """As GitHub reads it, with the caption below."""
    title = f"**{_markdown(table.title)}**"
    return "\n\n".join([title, grid(table.columns, table.rows), listed([*table.caption, *table.runs])])


def grid(columns: list[str], rows: list[list[str]]) -> str:
    """The cells alone, in Markdown."""
    escaped = [[_markdown(cell) for cell in row] for row in (columns, *rows)]
    return tabulate(escaped[1:], escaped[0], tablefmt="github", disable_numparse=True)


def listed(sentences: Iterable[str]) -> str:
    """Sentences as a list in Markdown."""
    # What would begin a heading, a list, a quotation or a line there is escaped too.
    return "\n".join(f"- {_BLOCK.sub(_AND_BACKSLASH, _markdown(sentence))}" for sentence in sentences)


def latex_table(table: Table) -> str:
    """
    A `table` as wide as the text at most, and in smaller letters if it is wider, with all that is to be said about it
    below; it needs the packages `booktabs` and `graphicx`.
    """
    table = _in_lines(table)
    cells = tabulate(table.rows, table.columns, tablefmt="latex_booktabs", disable_numparse=True)
    lines = [
        r"% Needs \usepackage{booktabs,graphicx}",
        r"\begin{table}[p]",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{4pt}",
        # Scaled down, but never up.
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        f"{cells}}}",
        rf"\caption{{{_latex(_unnumbered(table.title))}. {_latex(table.caption[0])}}}",
        # In short lines, since a setting has no place where a line may end.
        r"\par\raggedright\scriptsize",
        *(_latex(sentence) + r"\par" for sentence in [*table.caption[1:], *table.runs]),
        r"\end{table}",
    ]
    return "".join(_LATEX.get(character, character) for character in "\n".join(lines))


def _unnumbered(title: str) -> str:
    """LaTeX gives a table the number that it has in the text around it."""
    numbered = re.fullmatch(r"(Table \d+): (.*)", title)
    return title if numbered is None else f"{numbered[2][:1].upper()}{numbered[2][1:]} ({numbered[1]} of the paper)"


def _latex(text: str) -> str:
    return "".join(LATEX_ESCAPE_RULES.get(character, character) for character in text)


def html_table(table: Table) -> str:
    """A whole page, with what is to be known of the data and the runs folded below the table."""
    return rendered("table.html", table=_in_lines(table), anchor=lambda cell, title: None)


RENDERERS: dict[str, Callable[[Table], str]] = {
    "markdown": markdown_table,
    "latex": latex_table,
    "html": html_table,
}


def _in_lines(table: Table) -> Table:
    """Each text in one line: names of data and notes of result files may have any characters."""
    return Table(
        one_line(table.title),
        [*map(one_line, table.columns)],
        [[*map(one_line, row)] for row in table.rows],
        [*map(one_line, table.caption)],
        [*map(one_line, table.runs)],
    )


def _markdown(text: str) -> str:
    return re.sub(r"([\\|`*_<\[\]])", r"\\\1", one_line(text))
