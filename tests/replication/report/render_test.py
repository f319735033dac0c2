"""Tests of the forms of a table."""

from xml.etree import ElementTree

from elmo_tasks.replication import RENDERERS, Table

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

    def test_latex(self):
        """Oracle: by hand."""
        assert lines_of("latex") == [
            r"\begin{table}",
            r"\centering",
            r"\begin{tabular}{ll}",
            r"\toprule",
            r"task|s & p \\",
            r"\midrule",
            r"50\% \& \$5\_a & \ensuremath{<} 0.001 \\",
            r"1 $\pm$ 2 & $\lambda$=1 \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\caption{A\_title. \{a\} \ensuremath{<}b\ensuremath{>}. A ``run''.}",
            r"\end{table}",
        ]

    def test_html(self):
        """Oracle: an XML parser."""
        root = ElementTree.fromstring(RENDERERS["html"](TABLE))
        rows = [[cell.text.strip() for cell in row] for row in root.iter("tr")]
        assert rows == [TABLE.columns, *TABLE.rows]
        assert root.find("caption").text == "A_title. {a} <b>. A “run”."
