"""Tests of the forms of a table."""

from xml.etree import ElementTree

from elmo_tasks.replication import RENDERERS, Table

TABLE = Table("A_title", ["task|s", "p"], [["50% & $5_a", "< 0.001"], ["1 ± 2", "λ=1"]], ["{a} <b>."])


class TestRenderers:
    def test_markdown(self):
        """Oracle: by hand."""
        assert RENDERERS["markdown"](TABLE).split("\n") == [
            r"**A\_title**",
            "",
            r"| task\|s | p |",
            "| --- | --- |",
            r"| 50% & $5\_a | \< 0.001 |",
            "| 1 ± 2 | λ=1 |",
            "",
            r"- {a} \<b>.",
        ]

    def test_latex(self):
        """Oracle: by hand."""
        assert RENDERERS["latex"](TABLE).split("\n") == [
            r"\begin{table}",
            r"\centering",
            r"\begin{tabular}{ll}",
            r"\toprule",
            r"task|s & p \\",
            r"\midrule",
            r"50\% \& \$5\_a & $<$ 0.001 \\",
            r"1 $\pm$ 2 & $\lambda$=1 \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\caption{A\_title. \{a\} $<$b$>$.}",
            r"\end{table}",
        ]

    def test_html(self):
        """Oracle: an XML parser."""
        root = ElementTree.fromstring(RENDERERS["html"](TABLE))
        rows = [[cell.text for cell in row] for row in root.iter("tr")]
        assert rows == [TABLE.columns, *TABLE.rows]
        assert root.find("caption").text == "A_title. {a} <b>."
