"""Tests of the forms of a table."""

from xml.etree import ElementTree

import pytest

from elmo_tasks.replication import RENDERERS, Table
from elmo_tasks.replication.report.render import listed

CELLS = [["50% & $5_a", "< 0.001"], ["1 ± 2", "λ=1"]]
TABLE = Table("A_title", ["task|s", "p"], CELLS, ["{a} <b>."], ["A “run”."])


def lines_of(form: str) -> list[str]:
    """Without the spaces that only make columns straight."""
    return [" ".join(line.split()) for line in RENDERERS[form](TABLE).split("\n")]


class TestRenderers:
    def test_markdown(self):
        """Oracle: by hand."""
        lines = lines_of("markdown")
        assert set(lines.pop(3)) == {"|", "-"}
        assert lines == [
            r"**A\_title**",
            "",
            r"| task\|s | p |",
            r"| 50% & $5\_a | \< 0.001 |",
            "| 1 ± 2 | λ=1 |",
            "",
            r"- {a} \<b>.",
            "- A “run”.",
        ]

    @pytest.mark.parametrize("form", ["markdown", "latex", "html"])
    def test_a_text_stays_in_its_line_and_gives_no_orders(self, form):
        """Oracle: the number of lines of a table without such texts; R02: a line feed made a heading and a row."""
        text = "a\n\n# b\r\n| c |\u2028\x1b[2J\x9b\u202e"
        made = RENDERERS[form](Table(text, [text, "p"], [[text, "1"]], [text], [text]))
        assert made.count("\n") == RENDERERS[form](Table("a", ["b", "p"], [["c", "1"]], ["d"], ["e"])).count("\n")
        assert not {"\x1b", "\x9b", "\u202e", "\u2028", "\r"} & set(made)
        assert "b" in made and "u001b" in made

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("# a", r"\# a"),
            ("- a", r"\- a"),
            ("> a", r"\> a"),
            ("1. a", r"1\. a"),
            ("2) a", r"2\) a"),
            ("12. a", r"12\. a"),
            ("12 of a", "12 of a"),
            ("1.5 a-b #", r"1\.5 a-b #"),
            ("== a", r"\== a"),
        ],
    )
    def test_a_sentence_begins_no_block_of_markdown(self, text, expected):
        """Oracle: by hand."""
        assert listed([text]) == f"- {expected}"

    def test_latex(self):
        """Oracle: by hand."""
        assert lines_of("latex") == [
            r"% Needs \usepackage{booktabs,graphicx}",
            r"\begin{table}[p]",
            r"\centering",
            r"\small",
            r"\setlength{\tabcolsep}{4pt}",
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            r"\begin{tabular}{ll}",
            r"\toprule",
            r"task|s & p \\",
            r"\midrule",
            r"50\% \& \$5\_a & \ensuremath{<} 0.001 \\",
            r"1 $\pm$ 2 & $\lambda$=1 \\",
            r"\bottomrule",
            r"\end{tabular}}",
            r"\caption{A\_title. \{a\} \ensuremath{<}b\ensuremath{>}.}",
            r"\par\raggedright\scriptsize",
            r"A ``run''.\par",
            r"\end{table}",
        ]

    def test_latex_gives_a_table_its_own_number(self):
        """Oracle: by hand: its own table 2 may be the paper's Table 5."""
        made = RENDERERS["latex"](Table("Table 5: word senses, F1", ["a"], [["b"]], ["First."], []))
        assert r"\caption{Word senses, F1 (Table 5 of the paper). First.}" in made

    def test_html_is_a_whole_page(self):
        """Oracle: an XML parser: charset, title, cells, the caption below, and the notes folded."""
        page = RENDERERS["html"](TABLE)
        assert page.startswith("<!DOCTYPE html>\n<html")
        root = ElementTree.fromstring(page.replace("<!DOCTYPE html>", ""))
        assert root.find("head/meta").attrib == {"charset": "utf-8"}
        assert root.findtext("head/title") == root.findtext("body/h1") == "A_title"
        rows = [[cell.text.strip() for cell in row] for row in root.iter("tr")]
        assert rows == [TABLE.columns, *TABLE.rows]
        assert root.findtext("body/div/table/caption") == "{a} <b>."
        assert "caption-side: bottom" in root.findtext("head/style")
        (notes,) = root.iter("details")
        assert [each.text for each in notes.iter("li")] == ["A “run”."]
