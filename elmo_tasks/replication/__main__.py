"""`python -m elmo_tasks.replication README.md results`: the command behind `make results` and `make check`."""

import argparse
import sys
from pathlib import Path

from allennlp.common.checks import ConfigurationError

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.folders import files_below
from elmo_tasks.printable import one_line
from elmo_tasks.replication.evidence.measurement import measurement_files
from elmo_tasks.replication.overview.report_page import report_page, without_figures
from elmo_tasks.replication.overview.sources import read_sources
from elmo_tasks.replication.replicate import replication_of
from elmo_tasks.replication.report.findings import findings
from elmo_tasks.replication.report.pages import readme_table, runs_page, tables_page, with_section
from elmo_tasks.replication.report.plan_results import PlanResults

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> str | None:
    """
    # Parameters

    arguments
        Those of the command line; `None` takes them from there.

    # Returns

    `Optional[str]`
        The error; `None` after success.
    """
    parser = argparse.ArgumentParser(description="Write the results into the README and the pages of docs/replication.")
    parser.add_argument(
        "readme", type=Path, help="a file with the two markers, as docs/replication/findings.md next to it"
    )
    parser.add_argument("results", type=Path, help="a folder of run files (runs/) and result files (table*.json)")
    parser.add_argument("--plan", default="open", help="the plan of the run files")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is stale")
    given = parser.parse_args(arguments)
    try:
        pages = given.readme.parent / "docs" / "replication"
        runs = given.results / "runs"
        plan, outdated = _of_plan(given.plan, runs)
        results = [*sorted(given.results.glob("table*.json")), *measurement_files(runs)]
        sources = read_sources(given.results, results, without=outdated)
        readme = with_section(given.readme.read_text(encoding="utf-8"), readme_table(results, plan))
        made = {
            given.readme: readme,
            pages / "findings.md": with_section(
                (pages / "findings.md").read_text(encoding="utf-8"), findings(results, plan)
            ),
            pages / "tables.md": tables_page(results, plan),
            pages / "runs.md": runs_page(results, plan),
            pages.parent / "report.html": report_page(sources),
        }
        stale = [path for path in made if not path.is_file() or not _is_same(path.read_text("utf-8"), made[path])]
        if stale and given.check:
            return f"{', '.join(map(str, stale))} must be what the result files say, but is stale: run `make results`"
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as temporary:
                temporary.write_text(made[path], encoding="utf-8")
    except (ConfigurationError, ValueError, OSError) as error:
        return one_line(f"{given.readme}: {error}")
    return None


def _is_same(old: str, new: str) -> bool:
    return without_figures(old) == without_figures(new)


def _of_plan(plan: str, runs: Path) -> tuple[PlanResults, set[str]]:
    """
    And the names of the runs of earlier code. Whether data and archives are here does not matter: pages are the same
    on every machine.
    """
    if not any(path.suffix == ".json" for path in files_below(runs)):
        return PlanResults(), set()
    replication = replication_of(plan, data=None, results=None, runs=runs.absolute(), with_data=False)
    if refused := replication.evidence.refused:
        raise ValueError(next(iter(refused.values())))
    if problem := next(filter(None, (each.problem() for each in replication.measurements.values())), None):
        raise ValueError(problem)
    outdated = replication.evidence.outdated
    for name in sorted(outdated):
        print(f"{name} is a run of earlier code, and is not in the pages", file=sys.stderr)
    return replication.results(), outdated


if __name__ == "__main__":
    sys.exit(main())
