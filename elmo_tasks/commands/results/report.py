"""`allennlp elmo-report`: one page of HTML of results and runs."""

import argparse
import sys
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.printable import one_line
from elmo_tasks.replication import read_sources, report_page

__all__ = ["Report"]


@Subcommand.register("elmo-report")
class Report(Subcommand):
    """
    Writes one page of HTML, which needs no other file and no network, with the tables and figures of a folder of
    results next to the paper's numbers, and how each number was made.

    Registered as a `Subcommand` with name "elmo-report".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write a page of HTML with tables, figures, and how each number was made."
        sub: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        sub.add_argument("folder", type=Path, help="result files (table*.json), run files (runs/) or folders of runs")
        sub.add_argument("--output-file", type=Path, help="the page (default: report.html in the folder)")
        sub.set_defaults(func=_report)
        return sub


def _report(arguments: argparse.Namespace) -> None:
    sources = read_sources(arguments.folder)
    path = arguments.output_file or arguments.folder / "report.html"
    with atomic_file(path) as temporary:
        temporary.write_text(report_page(sources), encoding="utf-8")
    for problem in sources.problems:
        print(one_line(f"not in the report: {problem}"), file=sys.stderr)
    counted = f"{len(sources.tables)} tables and {len(sources.runs)} runs"
    print(one_line(f"{path}: {counted}, {path.stat().st_size / 1e6:.2f} MB"))
