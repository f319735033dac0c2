"""Tables as Markdown, LaTeX and HTML."""

import html
from collections.abc import Callable

from elmo_tasks.replication.report.table import Table

__all__ = ["RENDERERS", "html_table", "latex_table", "markdown_table"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "±": r"$\pm$",
    "λ": r"$\lambda$",
    "–": "--",
    "“": "``",
    "”": "''",
    '"': "''",
}
_MARKDOWN = {character: "\\" + character for character in "\\|`*_<[]"}


def markdown_table(table: Table) -> str:
    """As GitHub reads it, with the caption below."""
    lines = [table.columns, ["---"] * len(table.columns)]
    rows = ["| " + " | ".join(row) + " |" for row in (*_escaped(lines[:1], _MARKDOWN), *lines[1:])]
    rows += ["| " + " | ".join(row) + " |" for row in _escaped(table.rows, _MARKDOWN)]
    caption = [_escape(sentence, _MARKDOWN) for sentence in table.caption]
    return "\n".join([f"**{_escape(table.title, _MARKDOWN)}**", "", *rows, "", *(f"- {line}" for line in caption)])


def latex_table(table: Table) -> str:
    """A `table` that needs the package `booktabs`."""
    head, *body = (" & ".join(row) + r" \\" for row in _escaped([table.columns, *table.rows], _LATEX))
    caption = " ".join(_escape(sentence, _LATEX) for sentence in (f"{table.title}.", *table.caption))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            r"\end{table}",
        ]
    )


def html_table(table: Table) -> str:
    """A `table` with a `caption`."""

    def row(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    caption = " ".join(html.escape(sentence) for sentence in (f"{table.title}.", *table.caption))
    return "\n".join(
        [
            "<table>",
            f"<caption>{caption}</caption>",
            f"<thead>{row(table.columns, 'th')}</thead>",
            "<tbody>",
            *(row(cells, "td") for cells in table.rows),
            "</tbody>",
            "</table>",
        ]
    )


RENDERERS: dict[str, Callable[[Table], str]] = {
    "markdown": markdown_table,
    "latex": latex_table,
    "html": html_table,
}


def _escape(text: str, characters: dict[str, str]) -> str:
    return "".join(characters.get(character, character) for character in text)


def _escaped(rows: list[list[str]], characters: dict[str, str]) -> list[list[str]]:
    return [[_escape(cell, characters) for cell in row] for row in rows]
